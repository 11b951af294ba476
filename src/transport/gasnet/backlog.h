// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Transfers to a peer that wait until earlier requests are acknowledged.
#pragma once

#include "transport/common/network_peer.h"
#include "transport/common/pending_gets.h"
#include "transport/gasnet/put_epochs.h"

#include <deque>
#include <mutex>
#include <vector>

namespace diomp::transport::gasnet {

/// A put or a get, or the rest of it.
struct pending_transfer {
    std::uint64_t address = 0; ///< at the peer
    std::size_t left = 0;      ///< bytes
    // For a put:
    const std::byte *source = nullptr;
    epoch *ack_epoch = nullptr;
    completion *source_free = nullptr;
    std::vector<std::byte> copy; ///< of a small source
    // For a get:
    get_id id{};
    std::size_t offset = 0;
};

/// Any thread, but no handler of GASNet.
class backlog {
public:
    [[nodiscard]] bool is_empty() const {
        return num_waiting_.load(std::memory_order_acquire) == 0;
    }
    /// Whether another copy of a small source is within the limit.
    [[nodiscard]] bool has_space_for_copies() const {
        return copied_bytes_.load(std::memory_order_relaxed) < max_copied_bytes;
    }
    /// False, without an effect, if the peer has failed.
    [[nodiscard]] bool add(const network_peer &to, pending_transfer &&transfer) {
        std::lock_guard const guard(mutex_);
        if (to.is_failed()) {
            return false;
        }
        copied_bytes_.fetch_add(transfer.copy.size(), std::memory_order_relaxed);
        waiting_.push_back(std::move(transfer));
        num_waiting_.fetch_add(1, std::memory_order_release);
        return true;
    }
    /// Calls `send`, which takes a slot and advances the transfer, until it returns false for lack
    /// of slots. Returns at once if another thread is transmitting.
    template <typename Send>
    void transmit(Send &&send) {
        std::unique_lock const guard(mutex_, std::try_to_lock);
        if (!guard.owns_lock()) {
            return;
        }
        while (!waiting_.empty() && send(waiting_.front())) {
            if (waiting_.front().left == 0) {
                finish_front(0);
            }
        }
    }
    /// Calls mark_failed(), after which nothing is added, and ends all transfers with this code.
    template <typename MarkFailed>
    void fail(int code, MarkFailed &&mark_failed) {
        std::lock_guard const guard(mutex_);
        mark_failed();
        while (!waiting_.empty()) {
            finish_front(code);
        }
    }

private:
    static constexpr std::size_t max_copied_bytes = std::size_t{1} << 20;

    /// Under mutex_.
    void finish_front(int code) {
        pending_transfer const &front = waiting_.front();
        if (front.source_free != nullptr) {
            front.source_free->end(code);
        }
        copied_bytes_.fetch_sub(front.copy.size(), std::memory_order_relaxed);
        num_waiting_.fetch_sub(1, std::memory_order_release);
        waiting_.pop_front();
    }

    std::mutex mutex_;
    std::deque<pending_transfer> waiting_;
    std::atomic<std::size_t> num_waiting_{0};
    std::atomic<std::size_t> copied_bytes_{0};
};

} // namespace diomp::transport::gasnet
