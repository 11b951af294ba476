// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/conduit.h"

#include <fmt/core.h>

namespace diomp::transport {

void conduit_waits::wake() {
    node_.wake();
    if (network_ != nullptr) {
        network_->wake_idle_waiters();
    }
}

void conduit_waits::begin_polling() {
    node_.begin_polling();
    if (network_ != nullptr) {
        network_->begin_polling();
    }
}

bool conduit_waits::end_polling() {
    if (network_ == nullptr) {
        return node_.end_polling();
    }
    network_->end_polling();
    bool const waiting = node_.end_polling();
    return waiting || network_->has_messages();
}

bool conduit_waits::pause_polling(wait_kind what, bool is_first) {
    if (!sleeps_on_network(what)) {
        return end_polling();
    }
    if (is_first) {
        network_->end_polling();
        network_->begin_polling();
    }
    bool const waiting = node_.end_polling();
    return waiting || network_->has_messages();
}

void conduit_waits::resume_polling(wait_kind what) {
    if (sleeps_on_network(what)) {
        node_.begin_polling();
    } else {
        begin_polling();
    }
}

bool conduit_waits::idle_wait(wait_kind what, std::uint32_t seen, std::chrono::microseconds limit,
                              function_ref<bool()> ready) {
    bool is_ready = false;
    auto const is_over = [&] {
        is_ready = ready();
        return is_ready || node_.activity() != seen;
    };
    if (network_ == nullptr || what == wait_kind::store || !network_->idle_wait(limit, is_over)) {
        return node_.idle_wait(what, seen, limit, ready);
    }
    return is_ready;
}

void conduit_waits::wake_idle_waiters() {
    node_.wake_idle_waiters();
    if (network_ != nullptr) {
        network_->wake_idle_waiters();
    }
}

conduit::conduit(world_rank self, std::shared_ptr<node_transport> node,
                 std::shared_ptr<network> inter_node, lazy_array<std::byte *> direct_bases)
    : self_(self), node_(std::move(node)), network_(std::move(inter_node)),
      direct_bases_(std::move(direct_bases)),
      network_caps_(network_ == nullptr ? network_capabilities{} : network_->caps()),
      name_(network_ == nullptr ? node_->caps().name
                                : fmt::format("{}+{}", node_->caps().name, network_caps_.name)),
      waits_(*node_, network_.get(), node_->caps().store_sleepers) {}

std::string conduit::describe_path(world_rank peer) const {
    if (peer == self_) {
        return "self";
    }
    return direct_base(peer) != nullptr ? node_->caps().name : network_->describe_path(peer);
}

} // namespace diomp::transport
