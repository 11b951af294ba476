// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A rank that we speak to, and what is under way to it and from it.
#pragma once

#include "conduit/pending_gets.h"
#include "conduit/tcp/link.h"
#include "conduit/watch.h"

#include <deque>
#include <mutex>

namespace diomp::conduit::tcp {

/// Any thread.
class peer final : public watched_peer {
public:
    peer(world_rank rank, std::string host) : rank_(rank), host_(std::move(host)) {}

    [[nodiscard]] world_rank rank() const { return rank_; }
    [[nodiscard]] std::string name() const;

    /// The connection; nullptr before the first request of either side.
    [[nodiscard]] link *way() const { return way_.load(std::memory_order_acquire); }
    void go_by(link &chosen) { way_.store(&chosen, std::memory_order_release); }

    /// A put has been queued.
    void count_put() { num_puts_.fetch_add(1, std::memory_order_release); }
    /// `done` counts until all puts that have been queued have landed. True if the peer is to be
    /// asked for that, with `number`.
    [[nodiscard]] bool begin_flush(completion &done, std::uint64_t &number);
    void end_flush(std::uint64_t number);

    get_id begin_get(void *destination, std::size_t nbytes, completion &done);
    /// Where the bytes of a get go; nullptr if it has failed. Until end_get() or fail().
    [[nodiscard]] std::byte *destination_of(get_id id, std::size_t nbytes);
    void end_get(get_id id);
    [[nodiscard]] std::size_t num_gets() const { return gets_.count(); }

    [[nodiscard]] bool is_failed() const override {
        return failed_.load(std::memory_order_acquire);
    }
    [[nodiscard]] bool is_awaited() override {
        return has_unanswered() || unhandled_bytes.load(std::memory_order_relaxed) > 0;
    }
    /// Something that we have sent may not have arrived.
    [[nodiscard]] bool has_unanswered() const {
        return gets_.count() > 0 || num_landed_.load(std::memory_order_acquire) <
                                        num_puts_.load(std::memory_order_acquire);
    }
    /// Ends everything that waits for this peer with OMPX_ERR_PEER. Returns a sentence that names
    /// the peer, `why` and what waited; empty if it had failed before.
    std::string fail(const std::string &why);
    [[nodiscard]] std::string failure();
    /// What waits for this peer, in words; empty if nothing does.
    [[nodiscard]] std::string describe_outstanding(bool is_silent);

    /// Bytes of messages that the peer has not handled yet.
    std::atomic<std::uint64_t> unhandled_bytes{0};
    /// Bytes of its messages that we have handled and not told it.
    std::atomic<std::uint64_t> handled_bytes{0};

private:
    struct flush_wait {
        std::uint64_t number; ///< puts that must have landed
        completion *done;
    };

    [[nodiscard]] std::string count_outstanding() const;

    world_rank rank_;
    std::string host_;
    std::atomic<link *> way_{nullptr};
    std::atomic<std::uint64_t> num_puts_{0};
    std::atomic<std::uint64_t> num_landed_{0};
    std::mutex mutex_;
    std::uint64_t num_asked_ = 0; ///< puts of which the peer has been asked
    std::deque<flush_wait> waits_;
    pending_gets gets_;
    std::string failure_;
    std::atomic<bool> failed_{false};
};

} // namespace diomp::conduit::tcp
