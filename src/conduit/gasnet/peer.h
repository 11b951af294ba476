// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A rank that we speak to, and what is under way to it and from it.
//
// GASNet-EX delivers active messages in any order: messages carry numbers, and puts are counted
// per epoch. An epoch is what was put between two flushes; it is done when each of its puts has
// been answered.
#pragma once

#include "conduit/gasnet/bound_range.h"
#include "conduit/network_peer.h"
#include "conduit/pending_gets.h"

#include <algorithm>
#include <deque>
#include <gasnetex.h>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace diomp::conduit::gasnet {

/// All under the peer's lock, except its address, which answers carry.
struct epoch {
    std::uint64_t unanswered = 0; ///< pieces of puts
    std::uint64_t bytes = 0;
    bool is_closed = false;
    std::vector<completion *> waiting;
};

/// A put or a get, or what is left of it, that waits until requests before it have been answered.
struct waiting_transfer {
    std::uint64_t address = 0; ///< at the peer
    std::size_t left = 0;      ///< bytes
    // A put:
    const std::byte *source = nullptr;
    epoch *answers_to = nullptr;
    completion *source_free = nullptr;
    std::vector<std::byte> copy; ///< of a small one's source
    // A get:
    get_id id{};
    std::size_t offset = 0;
};

/// Any thread. Locks are never held in a call of GASNet that may run handlers, save for
/// send_mutex, which no handler takes.
class peer final : public network_peer {
public:
    peer(world_rank rank, std::string host, std::vector<bound_range> bound)
        : network_peer(rank, std::move(host)), bound_(std::move(bound)),
          has_segment_(std::ranges::any_of(bound_, [](const bound_range &each) {
              return each.range.kind == memory_kind::host;
          })) {}

    [[nodiscard]] gex_Rank_t gex_rank() const { return static_cast<gex_Rank_t>(rank().value()); }
    /// GASNet's own puts and gets reach its slot.
    [[nodiscard]] bool has_segment() const { return has_segment_; }
    /// All that they reach there.
    [[nodiscard]] std::span<const bound_range> bound() const { return bound_; }

    /// One more put of the open epoch; each of its pieces is to be answered with that epoch.
    epoch *begin_put(std::size_t num_pieces, std::size_t nbytes);
    /// A piece has been answered.
    void end_put(epoch *of);
    /// `done` counts until all puts so far have been answered.
    void flush(completion &done);

    get_id begin_get(void *destination, std::size_t nbytes, completion &done);
    /// A piece has come.
    void take_piece(get_id id, std::size_t offset, const void *bytes, std::size_t nbytes);
    /// GASNet has brought it to its place.
    void end_get(get_id id);

    /// Room for one more request that the peer will answer; false if too many are under way.
    [[nodiscard]] bool take_slot(std::uint32_t num_slots) {
        if (num_requests_.fetch_add(1, std::memory_order_relaxed) < num_slots) {
            return true;
        }
        num_requests_.fetch_sub(1, std::memory_order_relaxed);
        return false;
    }
    /// Some request, be it one that nobody waits for, has not been answered.
    [[nodiscard]] bool has_requests() const {
        return num_requests_.load(std::memory_order_acquire) > 0;
    }
    void free_slot() { num_requests_.fetch_sub(1, std::memory_order_release); }

    /// Something waits for slots.
    [[nodiscard]] bool has_backlog() const {
        return num_waiting_.load(std::memory_order_acquire) > 0;
    }
    /// Copies of small sources may be taken.
    [[nodiscard]] bool has_room_for_copies() const {
        return copied_bytes_.load(std::memory_order_relaxed) < most_copied_bytes;
    }
    /// False, and nothing has happened, if the peer has failed.
    [[nodiscard]] bool add_to_backlog(waiting_transfer &&transfer);
    /// Calls `send`, which takes a slot and advances the transfer, until it says that there is
    /// none. Returns at once if another thread is at it.
    template <typename Send>
    void ship_backlog(Send &&send) {
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

    /// Puts a message that has come into its place: calls `deliver` for it and for those that it
    /// held up, or keeps it.
    template <typename Deliver>
    void put_in_order(std::uint32_t number, std::uint16_t handler, const void *payload,
                      std::size_t nbytes, Deliver &&deliver) {
        if (number != next_number_) {
            auto const *const bytes = static_cast<const std::byte *>(payload);
            early_.try_emplace(number, early_message{handler, {bytes, bytes + nbytes}});
            return;
        }
        deliver(handler, static_cast<const std::byte *>(payload), nbytes);
        ++next_number_;
        for (auto found = early_.find(next_number_); found != early_.end();
             found = early_.find(next_number_)) {
            deliver(found->second.handler, found->second.payload.data(),
                    found->second.payload.size());
            early_.erase(found);
            ++next_number_;
        }
    }

    [[nodiscard]] bool is_awaited() override;
    /// Something that we have sent may not have arrived.
    [[nodiscard]] bool has_unanswered() const {
        return gets_.count() > 0 || num_puts_.load(std::memory_order_relaxed) > 0 ||
               unanswered_messages.load(std::memory_order_acquire) > 0;
    }
    std::string fail(const std::string &why) override;
    [[nodiscard]] std::string describe_outstanding(bool is_silent) override;

    std::mutex send_mutex;          ///< order of messages
    std::uint32_t next_to_send = 0; ///< under it
    /// Messages, bulk ones too, that have not been answered.
    std::atomic<std::uint64_t> unanswered_messages{0};
    std::atomic<std::int64_t> asked_to_attend_ns{0}; ///< traffic::attend

private:
    struct early_message {
        std::uint16_t handler;
        std::vector<std::byte> payload;
    };

    static constexpr std::size_t most_copied_bytes = std::size_t{1} << 20;

    [[nodiscard]] std::string count_outstanding() const override;
    void end_all() override;
    [[nodiscard]] std::unique_ptr<epoch> next_epoch(); ///< under mutex_
    /// Under backlog_mutex_.
    void finish_front(int code);

    std::vector<bound_range> const bound_;
    bool has_segment_;
    // Under mutex_:
    std::unique_ptr<epoch> open_ = std::make_unique<epoch>();
    std::vector<std::unique_ptr<epoch>> closed_; ///< with puts that have not been answered
    std::vector<std::unique_ptr<epoch>> spare_;
    pending_gets gets_;
    // Under their own:
    std::atomic<std::uint64_t> num_puts_{0};
    std::atomic<std::uint32_t> num_requests_{0};
    std::mutex backlog_mutex_; ///< never taken by handlers
    std::deque<waiting_transfer> backlog_;
    std::atomic<std::size_t> num_waiting_{0};
    std::atomic<std::size_t> copied_bytes_{0};
    // Under the lock of the arrivals:
    std::uint32_t next_number_ = 0;
    std::map<std::uint32_t, early_message> early_;
};

} // namespace diomp::conduit::gasnet
