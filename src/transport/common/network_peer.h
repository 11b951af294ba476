// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// State that every network keeps per peer, and the table of peers.
#pragma once

#include "base/ids.h"
#include "base/lazy_array.h"
#include "base/result.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace diomp::transport {

/// Message credit: bytes of unhandled messages that a rank accepts from each other rank.
inline constexpr std::uint64_t message_credit_bytes = 256 * 1024;
/// Credit that a message takes.
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
    void set_host(const std::string &host);

    [[nodiscard]] bool is_failed() const { return failed_.load(std::memory_order_acquire); }
    /// Fails all operations that wait for this peer with OMPX_ERR_PEER. Returns a sentence that
    /// names the peer, `why` and the outstanding operations; empty if the peer had failed before.
    virtual std::string fail(const std::string &why);
    /// The failure as an error; the peer has failed.
    [[nodiscard]] status lost_error() const;

    /// Whether an operation waits for this peer.
    [[nodiscard]] virtual bool is_awaited() = 0;
    /// The operations that wait for this peer, as text; empty if there are none. Messages alone
    /// count only if `is_silent`: targets return credit late.
    [[nodiscard]] virtual std::string describe_outstanding(bool is_silent) = 0;

    /// Call when anything arrives from the peer.
    void note_activity() {
        if (!was_active.load(std::memory_order_relaxed)) {
            was_active.store(true, std::memory_order_relaxed);
        }
    }

    /// Takes credit for a message to the peer. False: not enough credit.
    [[nodiscard]] bool take_credit(std::size_t payload_bytes);
    /// Returns credit for messages that the peer has handled.
    void return_credit(std::uint64_t nbytes) {
        unhandled_bytes_.fetch_sub(nbytes, std::memory_order_relaxed);
    }
    /// Bytes of messages that the peer has not handled yet.
    [[nodiscard]] std::uint64_t unhandled_bytes() const {
        return unhandled_bytes_.load(std::memory_order_relaxed);
    }
    /// Records that a message of the peer has been handled. True: send credit to the peer.
    [[nodiscard]] bool note_handled(std::size_t payload_bytes) {
        std::uint64_t const cost = message_cost(payload_bytes);
        return handled_bytes_.fetch_add(cost) + cost > message_credit_bytes / 4;
    }
    /// Credit to send to the peer now.
    [[nodiscard]] std::uint64_t take_handled_bytes() { return handled_bytes_.exchange(0); }

    std::atomic<bool> was_active{false}; ///< since the last liveness check
    /// consecutive liveness checks without activity; written by the network thread
    std::atomic<int> num_silent_checks{0};

protected:
    // Called with mutex_ held:
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
    std::string failure_; ///< under mutex_
};

/// Peers by rank, created on first use. Thread-safe.
template <typename Peer>
class peer_table {
public:
    explicit peer_table(std::size_t num_ranks) : by_rank_(num_ranks), made_(num_ranks) {}
    ~peer_table() {
        for (std::unique_ptr<Peer> &each : made_.first(num_made_.load())) {
            each.reset();
        }
    }
    peer_table(const peer_table &) = delete;
    peer_table &operator=(const peer_table &) = delete;

    [[nodiscard]] std::size_t num_ranks() const { return by_rank_.size(); }
    /// nullptr if there was no communication with this rank.
    [[nodiscard]] Peer *find(world_rank rank) const {
        return by_rank_[rank.index()].load(std::memory_order_acquire);
    }
    /// `make` returns the std::unique_ptr of a new peer.
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
    lazy_array<std::atomic<Peer *>> by_rank_;
    std::mutex mutex_;                       ///< held while a peer is created
    lazy_array<std::unique_ptr<Peer>> made_; ///< the first num_made_ are valid
    std::atomic<std::size_t> num_made_{0};
};

/// Converts peers to the form of the liveness check.
template <typename Peers>
std::vector<network_peer *> pointers_to(const Peers &peers) {
    std::vector<network_peer *> found;
    found.reserve(peers.size());
    for (auto const &each : peers) {
        found.push_back(each.get());
    }
    return found;
}

} // namespace diomp::transport
