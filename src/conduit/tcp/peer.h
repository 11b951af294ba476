// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A rank that we speak to, and what is under way to it and from it.
#pragma once

#include "conduit/network_peer.h"
#include "conduit/pending_gets.h"
#include "conduit/tcp/link.h"

#include <deque>
#include <mutex>

namespace diomp::conduit::tcp {

/// Any thread.
class peer final : public network_peer {
public:
    using network_peer::network_peer;

    /// The connection; nullptr before the first request of either side.
    [[nodiscard]] link *way() const { return way_.load(std::memory_order_acquire); }
    /// As link::collect_puts: before a flush.
    void collect_puts() const {
        if (link *const by = way(); by != nullptr) {
            by->collect_puts();
        }
    }
    void go_by(link &chosen) { way_.store(&chosen, std::memory_order_release); }

    /// Puts that have been queued; counted in the order in which they leave.
    [[nodiscard]] std::atomic<std::uint64_t> &num_puts() { return num_puts_; }
    /// `done` counts until all puts that have been queued have landed. True if the peer is to be
    /// asked for that, with `number`.
    [[nodiscard]] bool begin_flush(completion &done, std::uint64_t &number);
    void end_flush(std::uint64_t number);
    /// Whether the next put is to bring its flush along, before anybody wants one: if each of the
    /// last puts had a flush of its own. What is asked in vain costs one answer.
    [[nodiscard]] bool flushes_ahead() const {
        return is_flushed_each_.load(std::memory_order_relaxed) &&
               num_flushed_.load(std::memory_order_relaxed) ==
                   num_puts_.load(std::memory_order_relaxed);
    }
    /// That many puts have been flushed so.
    void note_asked(std::uint64_t number);

    /// It needs our port no more. False: it had been so before.
    [[nodiscard]] bool note_joined() { return !has_joined_.exchange(true); }

    get_id begin_get(void *destination, std::size_t nbytes, completion &done);
    /// Where the bytes of a get go; nullptr if it has failed. Until end_get() or fail().
    [[nodiscard]] std::byte *destination_of(get_id id, std::size_t nbytes);
    void end_get(get_id id);
    [[nodiscard]] std::size_t num_gets() const { return gets_.count(); }

    [[nodiscard]] bool is_awaited() override { return has_unanswered() || unhandled_bytes() > 0; }
    /// Something that we have sent may not have arrived.
    [[nodiscard]] bool has_unanswered() const {
        return gets_.count() > 0 || num_landed_.load(std::memory_order_acquire) <
                                        num_puts_.load(std::memory_order_acquire);
    }
    [[nodiscard]] std::string describe_outstanding(bool is_silent) override;

private:
    struct flush_wait {
        std::uint64_t number; ///< puts that must have landed
        completion *done;
    };

    [[nodiscard]] std::string count_outstanding() const override;
    void end_all() override;

    std::atomic<link *> way_{nullptr};
    std::atomic<bool> has_joined_{false};
    std::atomic<std::uint64_t> num_puts_{0};
    std::atomic<std::uint64_t> num_landed_{0};
    std::uint64_t num_asked_ = 0;               ///< puts of which the peer has been asked
    std::atomic<std::uint64_t> num_flushed_{0}; ///< puts before the last flush that was wanted
    std::atomic<bool> is_flushed_each_{false};
    std::deque<flush_wait> waits_;
    pending_gets gets_;
};

} // namespace diomp::conduit::tcp
