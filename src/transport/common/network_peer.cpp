// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/common/network_peer.h"

#include <fmt/core.h>

namespace diomp::transport {

std::string network_peer::compose_name() const {
    return fmt::format("rank {} on {}", rank_.value(), host_.empty() ? "?" : host_);
}

std::string network_peer::name() const {
    std::lock_guard const guard(mutex_);
    return compose_name();
}

void network_peer::set_host(const std::string &host) {
    std::lock_guard const guard(mutex_);
    host_ = host;
}

std::string network_peer::fail(const std::string &why) {
    std::lock_guard const guard(mutex_);
    if (is_failed()) {
        return {};
    }
    failure_ =
        fmt::format("{} is lost: {}; outstanding: {}", compose_name(), why, count_outstanding());
    failed_.store(true, std::memory_order_release);
    end_all();
    return failure_;
}

status network_peer::lost_error() const {
    std::lock_guard const guard(mutex_);
    return error(OMPX_ERR_PEER, failure_);
}

bool network_peer::take_credit(std::size_t payload_bytes) {
    std::uint64_t const cost = message_cost(payload_bytes);
    if (unhandled_bytes_.fetch_add(cost, std::memory_order_relaxed) + cost <=
        message_credit_bytes) {
        return true;
    }
    return_credit(cost);
    return false;
}

} // namespace diomp::transport
