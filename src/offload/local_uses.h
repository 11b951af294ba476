// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory of own devices that transfers of this rank still use after their calls have returned. What
// a program frees or unmaps meanwhile is freed when they are over: the network would write to, or
// read from, what the memory has become since.
#pragma once

#include "rma/rma.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace diomp::offload {

/// Any thread.
class local_uses {
public:
    explicit local_uses(rma::transfers &transfers) : transfers_(transfers) {}

    /// [begin, begin + nbytes) is used until `until` says otherwise; null: it is not.
    void add(const std::byte *begin, std::size_t nbytes, rma::local_use until);

    /// Nothing has been added that finish() has not found to be over.
    [[nodiscard]] bool none() const { return num_.load(std::memory_order_acquire) == 0; }
    /// Waits until nothing uses any of [begin, begin + nbytes). Not for uses that other threads add
    /// meanwhile.
    status finish(const std::byte *begin, std::size_t nbytes);

private:
    struct use {
        std::uintptr_t begin;
        std::uintptr_t end;
        rma::local_use until;
    };
    /// Under the mutex.
    void drop_finished();

    rma::transfers &transfers_;
    std::atomic<std::size_t> num_{0}; ///< of uses_
    std::mutex mutex_;                ///< leaf lock over the rest
    std::vector<use> uses_;
    std::size_t look_again_at_ = 64; ///< so many uses_ are worth a look for those that are over
};

} // namespace diomp::offload
