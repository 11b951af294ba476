// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "launch/gasnet/launcher.h"

#include "launch/gasnet/client.h"
#include "launch/gasnet/values.h"
#include "launch/host.h"
#include "launch/same_node.h"

namespace diomp::launch::gasnet {
namespace {

class gasnet_launcher final : public launcher {
public:
    explicit gasnet_launcher(const gasnet_client &job) : values_(job) {
        info_.rank = world_rank(static_cast<int>(gex_TM_QueryRank(job.team)));
        info_.size = static_cast<int>(gex_TM_QuerySize(job.team));
        info_.host = host_name();
        gex_Event_Wait(gex_Coll_BarrierNB(job.team, 0)); // all handlers are registered
    }

    status start() { return agree_on_job(*this, info_, node_identity()); }

    [[nodiscard]] const job_info &info() const override { return info_; }
    status put(std::string_view key, std::string_view value) override {
        return values_.put(key, value);
    }
    result<std::string> get(world_rank owner, std::string_view key) override {
        return values_.get(owner, key);
    }
    status fence() override { return values_.fence(); }
    status finalize() override {
        mark_finalized();
        return {};
    }
    void abort(int code, std::string_view /*message*/) noexcept override { gasnet_exit(code); }
    [[nodiscard]] int watch_fd() const override { return -1; }
    [[nodiscard]] const char *name() const override { return "gasnet"; }

private:
    job_info info_;
    values values_;
};

} // namespace

result<std::unique_ptr<launcher>> join() {
    auto joined = join_spawned();
    DIOMP_TRY(joined);
    auto made = std::make_unique<gasnet_launcher>(*joined.value());
    DIOMP_TRY(made->start());
    return std::unique_ptr<launcher>(std::move(made));
}

} // namespace diomp::launch::gasnet
