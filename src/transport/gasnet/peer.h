// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A remote rank, with the operations outstanding to it and from it.
//
// GASNet-EX delivers active messages in any order. Messages therefore carry sequence numbers, and
// puts are counted per epoch. An epoch contains the puts between two flushes; it is complete when
// each of them is acknowledged.
#pragma once

#include "transport/common/network_peer.h"
#include "transport/common/pending_gets.h"
#include "transport/gasnet/bound_range.h"

#include <algorithm>
#include <deque>
#include <gasnetex.h>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace diomp::transport::gasnet {

/// Protected by the peer's lock. Acknowledgements carry its address.
struct epoch {
    std::uint64_t unacknowledged = 0; ///< chunks of puts
    std::uint64_t bytes = 0;
    bool is_closed = false;
    std::vector<completion *> waiting;
};

/// A put or a get, or the rest of it, that waits until earlier requests are acknowledged.
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

/// Any thread. No lock is held in a call of GASNet that may run handlers, except send_mutex, which
/// no handler takes.
class peer final : public network_peer {
public:
    peer(world_rank rank, std::string host, std::vector<bound_range> bound)
        : network_peer(rank, std::move(host)), bound_(std::move(bound)),
          has_segment_(std::ranges::any_of(bound_, [](const bound_range &each) {
              return each.range.kind == memory_kind::host;
          })) {}

    [[nodiscard]] gex_Rank_t gex_rank() const { return static_cast<gex_Rank_t>(rank().value()); }
    /// Whether GASNet's own puts and gets can access its slot.
    [[nodiscard]] bool has_segment() const { return has_segment_; }
    /// All ranges that they can access there.
    [[nodiscard]] std::span<const bound_range> bound() const { return bound_; }

    /// Adds a put to the open epoch, which is returned for the acknowledgement of each chunk.
    epoch *begin_put(std::size_t num_chunks, std::size_t nbytes);
    /// A chunk has been acknowledged.
    void end_put(epoch *of);
    /// `done` counts until all puts so far are acknowledged.
    void flush(completion &done);

    get_id begin_get(void *destination, std::size_t nbytes, completion &done);
    /// Stores an arrived chunk of a get.
    void store_chunk(get_id id, std::size_t offset, const void *bytes, std::size_t nbytes);
    /// GASNet's own get has completed.
    void end_get(get_id id);

    /// Takes a slot for a request that the peer will answer; false if too many are outstanding.
    [[nodiscard]] bool take_slot(std::uint32_t num_slots) {
        if (num_requests_.fetch_add(1, std::memory_order_relaxed) < num_slots) {
            return true;
        }
        num_requests_.fetch_sub(1, std::memory_order_relaxed);
        return false;
    }
    /// Whether any request is unanswered, including credits and pings.
    [[nodiscard]] bool has_requests() const {
        return num_requests_.load(std::memory_order_acquire) > 0;
    }
    void free_slot() { num_requests_.fetch_sub(1, std::memory_order_release); }

    /// Whether transfers wait for slots.
    [[nodiscard]] bool has_backlog() const {
        return num_waiting_.load(std::memory_order_acquire) > 0;
    }
    /// Whether another copy of a small source is within the limit.
    [[nodiscard]] bool has_space_for_copies() const {
        return copied_bytes_.load(std::memory_order_relaxed) < max_copied_bytes;
    }
    /// False, without an effect, if the peer has failed.
    [[nodiscard]] bool add_to_backlog(pending_transfer &&transfer);
    /// Calls `send`, which takes a slot and advances the transfer, until it returns false for lack
    /// of slots. Returns at once if another thread is transmitting.
    template <typename Send>
    void transmit_backlog(Send &&send) {
        std::unique_lock const guard(backlog_mutex_, std::try_to_lock);
        if (!guard.owns_lock()) {
            return;
        }
        while (!backlog_.empty() && send(backlog_.front())) {
            if (backlog_.front().left == 0) {
                finish_front(0);
            }
        }
    }

    /// Restores the order of messages: calls `deliver` for this one and for later ones that waited
    /// for it, or stores it.
    template <typename Deliver>
    void deliver_in_order(std::uint32_t number, std::uint16_t handler, const void *payload,
                          std::size_t nbytes, Deliver &&deliver) {
        if (number != next_number_) {
            auto const *const bytes = static_cast<const std::byte *>(payload);
            out_of_order_.try_emplace(number,
                                      out_of_order_message{handler, {bytes, bytes + nbytes}});
            return;
        }
        deliver(handler, static_cast<const std::byte *>(payload), nbytes);
        ++next_number_;
        for (auto found = out_of_order_.find(next_number_); found != out_of_order_.end();
             found = out_of_order_.find(next_number_)) {
            deliver(found->second.handler, found->second.payload.data(),
                    found->second.payload.size());
            out_of_order_.erase(found);
            ++next_number_;
        }
    }

    [[nodiscard]] bool is_awaited() override;
    /// Whether an operation of this rank may not have arrived there.
    [[nodiscard]] bool has_unacknowledged() const {
        return gets_.count() > 0 || num_puts_.load(std::memory_order_relaxed) > 0 ||
               unacknowledged_messages.load(std::memory_order_acquire) > 0;
    }
    std::string fail(const std::string &why) override;
    [[nodiscard]] std::string describe_outstanding(bool is_silent) override;

    std::mutex send_mutex;          ///< order of messages
    std::uint32_t next_to_send = 0; ///< under it
    /// Messages that have not been acknowledged, those with a long payload included.
    std::atomic<std::uint64_t> unacknowledged_messages{0};
    std::atomic<std::int64_t> polling_requested_at_ns{0}; ///< see iface::request_polling

private:
    struct out_of_order_message {
        std::uint16_t handler;
        std::vector<std::byte> payload;
    };

    static constexpr std::size_t max_copied_bytes = std::size_t{1} << 20;

    [[nodiscard]] std::string count_outstanding() const override;
    void end_all() override;
    [[nodiscard]] std::unique_ptr<epoch> next_epoch(); ///< under mutex_
    /// Under backlog_mutex_.
    void finish_front(int code);

    std::vector<bound_range> const bound_;
    bool has_segment_;
    // Under mutex_:
    std::unique_ptr<epoch> open_ = std::make_unique<epoch>();
    std::vector<std::unique_ptr<epoch>> closed_; ///< with puts that are not acknowledged
    std::vector<std::unique_ptr<epoch>> spare_;
    pending_gets gets_;
    // Atomic, or under their own lock:
    std::atomic<std::uint64_t> num_puts_{0};
    std::atomic<std::uint32_t> num_requests_{0};
    std::mutex backlog_mutex_; ///< never taken by handlers
    std::deque<pending_transfer> backlog_;
    std::atomic<std::size_t> num_waiting_{0};
    std::atomic<std::size_t> copied_bytes_{0};
    // Under the lock of the arrivals:
    std::uint32_t next_number_ = 0;
    std::map<std::uint32_t, out_of_order_message> out_of_order_;
};

} // namespace diomp::transport::gasnet
