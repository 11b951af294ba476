// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How a rank reaches all ranks: those of its node through shared memory, the others through one
// network. types.h has the glossary.
#pragma once

#include "base/lazy_array.h"
#include "transport/network.h"
#include "transport/node_transport.h"

#include <memory>
#include <string>

namespace diomp::transport {

/// Sleeping and waking, with and without a network. All calls are those of sleep_control and have
/// its contracts.
class conduit_waits {
public:
    conduit_waits(sleep_control &node, network *inter_node,
                  const std::atomic<std::uint32_t> *sleepers)
        : node_(node), network_(inter_node), store_sleepers_(sleepers) {}

    [[nodiscard]] std::uint32_t activity() const { return node_.activity(); }
    void sleep(std::uint32_t seen, std::chrono::microseconds limit) { node_.sleep(seen, limit); }
    void wake();
    void begin_polling();
    [[nodiscard]] bool end_polling();
    /// Like end_polling() and begin_polling(), around idle_wait(): the network need not know of a
    /// sleep on its own descriptor, but of the first one of a wait, from which on it checks whether
    /// the peers respond.
    [[nodiscard]] bool pause_polling(wait_kind what, bool is_first);
    void resume_polling(wait_kind what);
    /// Instead of resume_polling(), if the thread does not poll any more.
    void end_paused_polling(wait_kind what) {
        if (sleeps_on_network(what)) {
            network_->end_polling();
        }
    }
    /// Sleeps for messages and handlers also end when the network has work for this rank.
    bool idle_wait(wait_kind what, std::uint32_t seen, std::chrono::microseconds limit,
                   function_ref<bool()> ready);
    void wake_idle_waiters();
    /// Whether the progress that any thread makes ends idle_wait().
    [[nodiscard]] bool wakes_idle_waits() const {
        return network_ == nullptr || network_->caps().wakes_idle_waits;
    }
    void wake_for_store(world_rank peer) { node_.wake_for_store(peer); }
    /// See node_capabilities::store_sleepers.
    [[nodiscard]] const std::atomic<std::uint32_t> &store_sleepers() const {
        return *store_sleepers_;
    }

private:
    [[nodiscard]] bool sleeps_on_network(wait_kind what) const {
        return network_ != nullptr && what != wait_kind::store && network_->caps().wakes_idle_waits;
    }

    sleep_control &node_;
    network *network_; ///< nullptr: none
    const std::atomic<std::uint32_t> *store_sleepers_;
};

/// All calls are thread-safe.
class conduit final {
public:
    /// `inter_node`: nullptr if every peer is direct. `direct_bases`: [world rank] see
    /// direct_base(); the entries of the peers that are not direct are not touched. The network may
    /// call the doorbell of `node` until it is destroyed.
    conduit(world_rank self, std::shared_ptr<node_transport> node,
            std::shared_ptr<network> inter_node, lazy_array<std::byte *> direct_bases);

    /// The names of the node transport and the network: "shm+tcp".
    [[nodiscard]] const std::string &name() const { return name_; }
    [[nodiscard]] conduit_waits &waits() { return waits_; }

    /// Address at which the peer's segment is mapped in this process; nullptr if it is not direct.
    [[nodiscard]] std::byte *direct_base(world_rank peer) const {
        return direct_bases_[peer.index()];
    }
    /// write_private and read_private; for direct peers.
    [[nodiscard]] private_memory &direct_private_memory() { return *node_; }

    /// Transfers with peers that are not direct; nullptr if every peer is.
    [[nodiscard]] rma_transport *rma() { return network_.get(); }
    [[nodiscard]] row_transfers *rows() { return network_caps_.rows; }
    /// nullptr: the network has none, or there is no network.
    [[nodiscard]] network_atomics *atomics() { return network_caps_.atomics; }
    /// nullptr: the network transfers host memory only, or there is no network.
    [[nodiscard]] device_transfers *device() { return network_caps_.device; }
    /// See device_transfers; without them, true for host memory.
    [[nodiscard]] bool supports_memory_kind(memory_kind kind) const {
        return network_caps_.device == nullptr ? kind == memory_kind::host
                                               : network_caps_.device->supports_memory_kind(kind);
    }
    [[nodiscard]] bool supports_memory_range(const memory_range &own) const {
        return network_caps_.device == nullptr ? own.kind == memory_kind::host
                                               : network_caps_.device->supports_memory_range(own);
    }
    [[nodiscard]] bool can_transfer(world_rank peer, const memory_range &remote,
                                    const memory_range &local) const {
        return network_caps_.device == nullptr
                   ? local.kind == memory_kind::host
                   : network_caps_.device->can_transfer(peer, remote, local);
    }
    /// See device_transfers; without them, nothing.
    void bind_device_context(const device_context_binder &binder) {
        if (network_caps_.device != nullptr) {
            network_caps_.device->bind_device_context(binder);
        }
    }
    [[nodiscard]] bool transfers_any_device_memory() const {
        return network_caps_.transfers_any_device_memory;
    }

    /// The transport of messages to this peer.
    [[nodiscard]] active_messages &messages(world_rank peer) {
        return direct_base(peer) != nullptr ? static_cast<active_messages &>(*node_) : *network_;
    }
    /// Maximum payload of an active message to this peer, equal in both directions. At least 240.
    [[nodiscard]] std::size_t max_message_bytes(world_rank peer) const {
        return direct_base(peer) != nullptr ? node_->caps().max_message_bytes
                                            : network_caps_.max_message_bytes;
    }
    /// network_capabilities::max_am_long for peers that are not direct, else 0.
    [[nodiscard]] std::size_t max_am_long(world_rank peer) const {
        return direct_base(peer) != nullptr ? 0 : network_caps_.max_am_long;
    }
    /// AM longs to this peer; nullptr if it is direct.
    [[nodiscard]] am_long_transport *am_long(world_rank peer) {
        return direct_base(peer) != nullptr ? nullptr : network_.get();
    }
    /// AM longs from all peers; nullptr without a network.
    [[nodiscard]] am_long_transport *am_long() { return network_.get(); }
    /// active_messages::poll for all peers.
    int poll(message_handler handle) {
        int const handled = node_->poll(handle);
        return network_ == nullptr ? handled : handled + network_->poll(handle);
    }

    /// nullptr without a network: then no peer can be lost.
    [[nodiscard]] network_peers *peers() { return network_.get(); }
    /// The path to this peer and the reason for its choice, for diomp-info: "shm", "ucx (tcp,
    /// active messages): ...".
    [[nodiscard]] std::string describe_path(world_rank peer) const;

private:
    world_rank self_;
    std::shared_ptr<node_transport> node_;
    std::shared_ptr<network> network_; ///< destroyed before node_
    lazy_array<std::byte *> direct_bases_;
    network_capabilities network_caps_;
    std::string name_;
    conduit_waits waits_;
};

} // namespace diomp::transport
