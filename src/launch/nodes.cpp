// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "launch/nodes.h"

#include "launch/same_node.h"

#include <fmt/core.h>

#include <algorithm>

namespace diomp::launch {
namespace {

/// Forwards all calls; changes only the description of the nodes.
class regrouping_launcher final : public launcher {
public:
    regrouping_launcher(std::unique_ptr<launcher> inner, job_info info)
        : inner_(std::move(inner)), info_(std::move(info)) {}

    const job_info &info() const override { return info_; }
    status put(std::string_view key, std::string_view value) override {
        return inner_->put(key, value);
    }
    result<std::string> get(world_rank owner, std::string_view key) override {
        return inner_->get(owner, key);
    }
    status fence() override { return inner_->fence(); }
    status finalize() override { return inner_->finalize(); }
    void abort(int code, std::string_view message) noexcept override {
        inner_->abort(code, message);
    }
    bool give_up(int code, std::string_view message) noexcept override {
        return inner_->give_up(code, message);
    }
    void report_peer_failure(std::optional<world_rank> peer) noexcept override {
        inner_->report_peer_failure(peer);
    }
    int stacks_fd() const override { return inner_->stacks_fd(); }
    void stacks_ready() noexcept override { inner_->stacks_ready(); }
    void stacks_shown() noexcept override { inner_->stacks_shown(); }
    int watch_fd() const override { return inner_->watch_fd(); }
    const char *name() const override { return inner_->name(); }

private:
    std::unique_ptr<launcher> inner_;
    job_info info_;
};

} // namespace

std::unique_ptr<launcher> split_nodes(std::unique_ptr<launcher> inner, int node_size) {
    job_info info = inner->info();
    int const node = info.local.value() / node_size;
    int const first = node * node_size;
    info.is_split = info.is_on_one_machine();
    info.local_size = std::min(node_size, info.local_size - first);
    info.local = local_rank{info.local.value() - first};
    auto const begin = inner->info().local_ranks.begin() + first;
    info.local_ranks.assign(begin, begin + info.local_size);
    info.host += fmt::format("+{}", node);
    return std::make_unique<regrouping_launcher>(std::move(inner), std::move(info));
}

std::unique_ptr<launcher> set_node(std::unique_ptr<launcher> inner,
                                   std::vector<world_rank> node_ranks, std::string job_id) {
    job_info info = inner->info();
    info.job_id = std::move(job_id);
    set_local_ranks(info, std::move(node_ranks));
    return std::make_unique<regrouping_launcher>(std::move(inner), std::move(info));
}

} // namespace diomp::launch
