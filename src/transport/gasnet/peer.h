// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A remote rank, with the operations outstanding to it and from it.
//
// GASNet-EX delivers active messages in any order: see put_epochs.h and message_order.h.
#pragma once

#include "transport/common/network_peer.h"
#include "transport/common/pending_gets.h"
#include "transport/gasnet/backlog.h"
#include "transport/gasnet/bound_range.h"
#include "transport/gasnet/message_order.h"

#include <algorithm>
#include <gasnetex.h>
#include <mutex>
#include <vector>

namespace diomp::transport::gasnet {

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

    [[nodiscard]] bool is_awaited() override;
    /// Whether an operation of this rank may not have arrived there.
    [[nodiscard]] bool has_unacknowledged() const {
        return gets_.count() > 0 || epochs_.num_unacknowledged() > 0 ||
               unacknowledged_messages.load(std::memory_order_acquire) > 0;
    }
    std::string fail(const std::string &why) override;
    [[nodiscard]] std::string describe_outstanding(bool is_silent) override;

    backlog waiting;                ///< for slots
    message_order order;            ///< of incoming messages; under the lock of the arrivals
    std::mutex send_mutex;          ///< order of outgoing messages
    std::uint32_t next_to_send = 0; ///< under it
    /// Messages that have not been acknowledged, those with a long payload included.
    std::atomic<std::uint64_t> unacknowledged_messages{0};
    std::atomic<std::int64_t> polling_requested_at_ns{0}; ///< see iface::request_polling

private:
    [[nodiscard]] std::string count_outstanding() const override;
    void end_all() override;

    std::vector<bound_range> const bound_;
    bool has_segment_;
    put_epochs epochs_; ///< under mutex_
    pending_gets gets_; ///< under mutex_
    std::atomic<std::uint32_t> num_requests_{0};
};

} // namespace diomp::transport::gasnet
