// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "launch/singleton/launcher.h"

#include "launch/host.h"

#include <fmt/format.h>

#include <map>
#include <unistd.h>

namespace diomp::launch::singleton {
namespace {

class singleton_launcher final : public launcher {
public:
    singleton_launcher() {
        info_.host = host_name();
        info_.job_id = make_job_id(info_.host);
        info_.local_ranks = {world_rank(0)};
    }

    [[nodiscard]] const job_info &info() const override { return info_; }

    status put(std::string_view key, std::string_view value) override {
        pending_.insert_or_assign(std::string(key), std::string(value));
        return {};
    }

    result<std::string> get(world_rank owner, std::string_view key) override {
        auto const found = values_.find(key);
        if (owner != world_rank(0) || found == values_.end()) {
            return error(OMPX_ERR_STATE,
                         fmt::format("rank {} has published no '{}'", owner.value(), key));
        }
        return found->second;
    }

    // Values become visible here and not before, as in a larger world.
    status fence() override {
        pending_.merge(values_);
        values_ = std::move(pending_);
        pending_.clear();
        return {};
    }

    status finalize() override { return {}; }
    void abort(int /*code*/, std::string_view /*message*/) noexcept override {}
    [[nodiscard]] int watch_fd() const override { return -1; }
    [[nodiscard]] const char *name() const override { return "singleton"; }

private:
    job_info info_;
    std::map<std::string, std::string, std::less<>> pending_;
    std::map<std::string, std::string, std::less<>> values_;
};

} // namespace

std::unique_ptr<launcher> make() { return std::make_unique<singleton_launcher>(); }

} // namespace diomp::launch::singleton
