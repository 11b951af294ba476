// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "launch/nodes.h"

#include <fmt/core.h>

#include <algorithm>

namespace diomp::launch {
namespace {

/// Forwards all calls; changes only the description of the nodes.
class split_launcher final : public launcher {
public:
    split_launcher(std::unique_ptr<launcher> inner, int node_size)
        : inner_(std::move(inner)), info_(inner_->info()) {
        int const node = info_.local.value() / node_size;
        int const first = node * node_size;
        info_.is_split = info_.is_on_one_machine();
        info_.local_size = std::min(node_size, info_.local_size - first);
        info_.local = local_rank{info_.local.value() - first};
        auto const begin = inner_->info().local_ranks.begin() + first;
        info_.local_ranks.assign(begin, begin + info_.local_size);
        info_.host += fmt::format("+{}", node);
    }

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
    return std::make_unique<split_launcher>(std::move(inner), node_size);
}

} // namespace diomp::launch
