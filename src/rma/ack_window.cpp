// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rma/internal/ack_window.h"

#include "base/assert.h"

#include <fmt/core.h>

namespace diomp::rma {

std::optional<std::uint64_t> ack_window::try_open() {
    std::lock_guard const guard(mutex_);
    std::uint64_t const number = next_.load(std::memory_order_relaxed);
    if (number - lowest_.load(std::memory_order_relaxed) == capacity) {
        return std::nullopt;
    }
    DIOMP_ASSERT(!closed_.test(number % capacity), "the bit of a new number is clear");
    next_.store(number + 1, std::memory_order_release);
    return number;
}

void ack_window::close(std::uint64_t number, world_rank peer, int failure) {
    std::lock_guard const guard(mutex_);
    if (failure != 0 && !first_failure_) {
        first_failure_ =
            failure == OMPX_ERR_ADDRESS
                ? error(OMPX_ERR_ADDRESS,
                        fmt::format("rank {} refused an earlier put_signal or atomic operation: "
                                    "the memory was unregistered meanwhile, or it was read-only "
                                    "when it was registered",
                                    peer.value()),
                        "fence before the owner unregisters its memory")
                : error(static_cast<ompx_status>(failure),
                        fmt::format("an earlier transfer to rank {} failed", peer.value()));
        failed_.store(true, std::memory_order_relaxed);
    }
    DIOMP_ASSERT(number >= lowest_.load(std::memory_order_relaxed) &&
                     number < next_.load(std::memory_order_relaxed),
                 "an open number is acknowledged");
    DIOMP_ASSERT(!closed_.test(number % capacity), "a number is acknowledged once");
    closed_.set(number % capacity);
    std::uint64_t lowest = lowest_.load(std::memory_order_relaxed);
    while (closed_.test(lowest % capacity)) {
        closed_.reset(lowest % capacity);
        ++lowest;
    }
    lowest_.store(lowest, std::memory_order_release);
}

bool ack_window::is_closed(std::uint64_t number) {
    if (all_closed_before(number + 1)) {
        return true;
    }
    std::lock_guard const guard(mutex_);
    return number < lowest_.load(std::memory_order_relaxed) || closed_.test(number % capacity);
}

status ack_window::take_failure() {
    if (!failed_.load(std::memory_order_relaxed)) [[likely]] {
        return {};
    }
    std::lock_guard const guard(mutex_);
    failed_.store(false, std::memory_order_relaxed);
    if (!first_failure_) {
        return {};
    }
    error failure = std::move(*first_failure_);
    first_failure_.reset();
    return failure;
}

} // namespace diomp::rma
