// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What every network keeps of a rank that it speaks to, and the table of these.
#pragma once

#include "base/ids.h"
#include "base/result.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace diomp::conduit {

/// The queue of a rank holds this much of the messages of each other one.
inline constexpr std::uint64_t message_window_bytes = 256 * 1024;
/// What a message takes of it.
constexpr std::uint64_t message_cost(std::size_t payload_bytes) { return payload_bytes + 16; }

/// Any thread.
class network_peer {
public:
    explicit network_peer(world_rank rank, std::string host = {})
        : rank_(rank), host_(std::move(host)) {}
    virtual ~network_peer() = default;
    network_peer(const network_peer &) = delete;
    network_peer &operator=(const network_peer &) = delete;

    [[nodiscard]] world_rank rank() const { return rank_; }
    /// "rank 3 on hostb".
    [[nodiscard]] std::string name() const;
    void learn_host(const std::string &host);

    [[nodiscard]] bool is_failed() const { return failed_.load(std::memory_order_acquire); }
    /// Ends everything that waits for this peer with OMPX_ERR_PEER. Returns a sentence that names
    /// the peer, `why` and what waited; empty if it had failed before.
    virtual std::string fail(const std::string &why);
    /// That sentence as an error, of a peer that has failed.
    [[nodiscard]] status gone() const;

    /// Something waits for this peer.
    [[nodiscard]] virtual bool is_awaited() = 0;
    /// What waits for this peer, in words; empty if nothing does. Messages alone count only if
    /// `is_silent`: targets tell late what they have handled.
    [[nodiscard]] virtual std::string describe_outstanding(bool is_silent) = 0;

    /// Something came from it.
    void note_sign_of_life() {
        if (!was_heard.load(std::memory_order_relaxed)) {
            was_heard.store(true, std::memory_order_relaxed);
        }
    }

    /// Takes room for a message in the peer's queue. False: there is none.
    [[nodiscard]] bool take_room(std::size_t payload_bytes);
    /// The peer has handled so much.
    void free_room(std::uint64_t nbytes) {
        unhandled_bytes_.fetch_sub(nbytes, std::memory_order_relaxed);
    }
    /// Bytes of messages that the peer has not handled yet.
    [[nodiscard]] std::uint64_t unhandled_bytes() const {
        return unhandled_bytes_.load(std::memory_order_relaxed);
    }
    /// A message of the peer has been handled. True: it should be told.
    [[nodiscard]] bool note_handled(std::size_t payload_bytes) {
        std::uint64_t const cost = message_cost(payload_bytes);
        return handled_bytes_.fetch_add(cost) + cost > message_window_bytes / 4;
    }
    /// What it is to be told.
    [[nodiscard]] std::uint64_t take_handled() { return handled_bytes_.exchange(0); }

    std::atomic<bool> was_heard{false}; ///< since the watch looked
    std::atomic<int> silent_looks{0};   ///< of the watch in a row; the network thread writes

protected:
    // Under mutex_:
    [[nodiscard]] virtual std::string count_outstanding() const = 0;
    virtual void end_all() {}

    mutable std::mutex mutex_; ///< leaf lock

private:
    [[nodiscard]] std::string compose_name() const;

    world_rank rank_;
    std::atomic<bool> failed_{false};
    std::atomic<std::uint64_t> unhandled_bytes_{0};
    std::atomic<std::uint64_t> handled_bytes_{0};
    std::string host_;    ///< under mutex_
    std::string failure_; ///< likewise
};

/// Peers by rank, made on first use. Any thread.
template <typename Peer>
class peer_table {
public:
    explicit peer_table(std::size_t num_ranks) : by_rank_(num_ranks), made_(num_ranks) {}

    [[nodiscard]] std::size_t num_ranks() const { return by_rank_.size(); }
    /// nullptr if never spoken to.
    [[nodiscard]] Peer *find(world_rank rank) const {
        return by_rank_[rank.index()].load(std::memory_order_acquire);
    }
    /// `make` gives the std::unique_ptr of a new one.
    template <typename Make>
    Peer &find_or_make(world_rank rank, Make &&make) {
        if (Peer *const known = find(rank); known != nullptr) [[likely]] {
            return *known;
        }
        std::unique_ptr<Peer> fresh = make();
        std::lock_guard const guard(mutex_);
        if (Peer *const known = find(rank); known != nullptr) {
            return *known;
        }
        std::size_t const before = num_made_.load(std::memory_order_relaxed);
        made_[before] = std::move(fresh);
        num_made_.store(before + 1, std::memory_order_release);
        by_rank_[rank.index()].store(made_[before].get(), std::memory_order_release);
        return *made_[before];
    }
    [[nodiscard]] std::span<const std::unique_ptr<Peer>> all() const {
        return {made_.data(), num_made_.load(std::memory_order_acquire)};
    }

private:
    std::vector<std::atomic<Peer *>> by_rank_;
    std::mutex mutex_;                        ///< of who makes one
    std::vector<std::unique_ptr<Peer>> made_; ///< first num_made_ ones; never moves
    std::atomic<std::size_t> num_made_{0};
};

/// As the watch wants them.
template <typename Peers>
std::vector<network_peer *> pointers_to(const Peers &peers) {
    std::vector<network_peer *> found;
    found.reserve(peers.size());
    for (auto const &each : peers) {
        found.push_back(each.get());
    }
    return found;
}

} // namespace diomp::conduit
