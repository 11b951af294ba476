// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The world of a client and its sessions: an address space like that of a job of ranks, with the
// client as rank 0, followed by one session per device. The control connections are its launcher.
//
// If the client is a rank of a job whose ranks have remote devices, all ranks of the job are
// clients of one world: rank i of the job is rank i, followed by the sessions of rank 0, of rank 1
// and so on. Each client relays the start-up of its own sessions to the other clients by the job's
// launcher.
//
// Sessions that share memory (transport/find_node.h) are a node, over TCP; each other rank is a
// node of its own, so all data of clients goes through the network conduit. A device's memory is
// its rank's slot in the arena: a device address is valid in the whole world, and memory of the
// client has no such address.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"
#include "messaging/engine.h"
#include "transport/types.h"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace diomp::transport {
class arena;
class conduit;
class node_watch;
} // namespace diomp::transport

namespace diomp::launch {
class launcher;
}

namespace diomp::offload::remote {

class control_connection;

/// Receives output of a session during start-up: the session's index in the list, and the frame.
using output_handler = std::function<void(std::size_t session, std::string_view packet)>;

/// Hosts of a world's ranks: with one_host, no port is open to other hosts.
enum class host_scope : bool { one_host, several_hosts };

/// Place of a process in its world.
struct world_position {
    world_rank rank{0};
    int size = 1;
    int num_clients = 1; ///< the ranks below
    host_scope scope = host_scope::several_hosts;
};

/// The ranks of a client's sessions, in a world whose clients have `num_devices` devices each.
std::vector<world_rank> sessions_of(world_rank client, std::span<const int> num_devices);

/// Gives `own` to all clients of the job; returns those of the others. Collective over the clients.
/// Blocks.
using client_exchange = std::function<result<std::vector<std::string>>(std::string own)>;
/// An exchange by the job's launcher, for one thread at a time; the launcher outlives it.
client_exchange make_client_exchange(launch::launcher &job);

struct control_peer {
    control_connection *connection = nullptr;
    std::string label; ///< names the peer in errors
};

/// Launcher of a client. `sessions`: in the order of their ranks. Each may take `timeout_s` for
/// each fence. `exchange`: empty if there is one client.
std::unique_ptr<launch::launcher> make_client_launcher(std::vector<control_peer> sessions,
                                                       const world_position &position,
                                                       double timeout_s,
                                                       output_handler on_output = {},
                                                       client_exchange exchange = {});
/// Relays the start of the runtime of regions in a session to the clients of the sessions with the
/// same index on other ranks. Blocks until it has started.
status relay_runtime_start(control_peer session, const world_position &position, double timeout_s,
                           output_handler on_output, client_exchange exchange);
/// Launcher of a session: in the world, or in the job of sessions with one index (no clients).
std::unique_ptr<launch::launcher>
make_session_launcher(control_connection &client, const world_position &position, double timeout_s);

/// Devices of a world whose memory is outside their slots.
struct gpus_of_world {
    std::vector<std::vector<bool>> is_gpu; ///< [client][device]
    std::size_t least_bytes = 0;           ///< memory of the smallest one
};

struct world_options {
    std::string conduit = "tcp";
    int num_clients = 1;
    std::vector<int> num_devices; ///< [client]; empty at sessions
    gpus_of_world gpus;           ///< empty at sessions
    std::size_t memory_bytes = 0; ///< of the largest device; the value of rank 0 is used
    int spin_count = 2000;
    double dead_peer_timeout_s = 30;
    bool encrypts_data = false; ///< the same on all ranks
    int node_size = 0; ///< sessions of a node, at most; 0: any number. The same on all ranks
    bool may_share_memory = true; ///< this session, with others
    /// conduit_options::device_memory; "off" at rank 0 disables it on all ranks.
    std::string network_device_memory = "auto";
    /// Kind of this rank's device memory if that is not its slot.
    std::optional<transport::memory_kind> device_memory;
};

/// Active-message handlers of the world, registered on all ranks. A handler of messages that a rank
/// never receives may be empty: a client receives replies only, a session all others.
struct world_handlers {
    messaging::handler batch;
    messaging::handler reply;
    messaging::handler copy;       ///< peer_copy
    messaging::handler copy_reply; ///< reply to peer_copy
};

[[nodiscard]] inline std::string_view bytes_of(const transport::message &incoming) {
    return {reinterpret_cast<const char *>(incoming.payload.data()), incoming.payload.size()};
}

class world {
public:
    /// Collective. Blocks.
    static result<std::unique_ptr<world>> create(std::unique_ptr<launch::launcher> launcher,
                                                 const world_options &options,
                                                 world_handlers handlers,
                                                 const transport::failure_handler &on_failure);
    ~world();
    world(const world &) = delete;
    world &operator=(const world &) = delete;

    [[nodiscard]] messaging::engine &engine() { return *engine_; }
    /// From now on no lost peer is reported.
    void freeze();
    [[nodiscard]] transport::conduit &conduit() { return *conduit_; }
    [[nodiscard]] const transport::arena &arena() const { return *arena_; }
    [[nodiscard]] world_rank rank() const;
    [[nodiscard]] int size() const;
    /// [client] At clients.
    [[nodiscard]] std::span<const int> num_devices() const { return num_devices_; }
    /// At clients.
    [[nodiscard]] const gpus_of_world &gpus() const { return gpus_; }
    [[nodiscard]] bool is_session(world_rank rank) const {
        return rank.value() >= num_clients_ && rank.value() < size();
    }
    /// The session whose slot has this address; nullopt: none has.
    [[nodiscard]] std::optional<world_rank> session_with(std::uint64_t address) const;
    /// Number of a session in messages: in a job, among the remote devices of all ranks.
    [[nodiscard]] int session_number(world_rank rank) const { return rank.value() - num_clients_; }
    /// The outcome of a transfer with a session; errors name the device.
    [[nodiscard]] status name_device(world_rank session, status done) const;
    [[nodiscard]] std::uint64_t memory_of(world_rank owner) const;

    void send(world_rank to, transport::handler_id handler, std::string_view bytes) {
        engine_->send(to, handler, std::as_bytes(std::span(bytes)));
    }

    /// Name of the node of a rank: ranks of one node share memory.
    [[nodiscard]] const std::string &node_of(world_rank rank) const {
        return node_names_[rank.index()];
    }
    /// An error if the peer is on this rank's node and has ended: transfers there do not notice.
    [[nodiscard]] status check_present(world_rank peer) const;
    /// Maps the memory of a session of this node once more, at `to`, in place of what is there.
    status map_again(world_rank session, void *to) const;

    /// Kind of a rank's device memory outside its slot; nullopt: there is none that the network can
    /// access.
    [[nodiscard]] std::optional<transport::memory_kind> device_memory(world_rank owner) const {
        return device_memory_[owner.index()];
    }

    static constexpr transport::handler_id batch_handler = 0;
    static constexpr transport::handler_id reply_handler = 1;
    static constexpr transport::handler_id copy_handler = 2;
    static constexpr transport::handler_id copy_reply_handler = 3;

private:
    world() = default;
    void add_handlers(world_handlers handlers);
    /// Finds the sessions of this node. Collective; blocks.
    status find_node(const world_options &options);
    status publish_device_memory(const world_options &options);
    status collect_device_memory();

    std::unique_ptr<launch::launcher> launcher_;
    int num_clients_ = 1;
    std::vector<int> num_devices_;
    gpus_of_world gpus_;
    std::unique_ptr<transport::arena> arena_;
    std::unique_ptr<transport::node_watch> watch_; ///< null: no other rank is on this node
    std::unique_ptr<transport::conduit> conduit_;
    std::unique_ptr<messaging::engine> engine_;
    std::vector<std::optional<transport::memory_kind>> device_memory_; ///< [rank]
    std::vector<std::string> node_names_;                              ///< [rank]
};

/// Memory of sessions on the host of a client: it maps the memory of their devices, at its address
/// in the world, and copies there instead of putting and getting. Each of these sessions passes the
/// descriptor of its memory at start-up. Messages take the network as between other ranks. At a
/// client; fixed after map(), any thread then.
class shared_slots {
public:
    shared_slots();
    ~shared_slots();
    shared_slots(const shared_slots &) = delete;
    shared_slots &operator=(const shared_slots &) = delete;

    /// Publishes where sessions of this host can pass their memory, or that none shall. Call before
    /// the world is created.
    status publish(launch::launcher &launcher, bool may_share);
    /// Maps what sessions have passed; the others are reached by the network. Call when the world
    /// is complete. Does not block.
    void map(const world &ranks);

    /// Whether this process can load and store the memory of a session.
    [[nodiscard]] bool has(world_rank session) const {
        return session.index() < is_mapped_.size() && is_mapped_[session.index()];
    }
    /// An error if a session of has() has ended, or is lost: loads and stores do not notice. It
    /// names the device.
    [[nodiscard]] status check_present(world_rank session) const;
    /// The session counts as lost from now on, also if its process continues. Any thread.
    void note_lost(world_rank session);

private:
    unique_fd listener_;
    std::string secret_;                     ///< in what sessions pass
    const world *ranks_ = nullptr;           ///< of map()
    std::vector<bool> is_mapped_;            ///< [rank]; empty: none
    std::vector<std::atomic<bool>> is_lost_; ///< [rank]; empty: none is mapped
    std::unique_ptr<transport::node_watch> watch_;
};

/// Why a session is lost, without its rank of the world: the program knows ranks of its job only.
[[nodiscard]] std::string loss_without_rank(world_rank lost, std::string why);

/// At a session: passes the memory of this rank to the clients of this host that accept it. Call
/// between two fences of the world, after that of publish(). Does not block.
void pass_slot(launch::launcher &launcher, const transport::arena &memory, int num_clients);

} // namespace diomp::offload::remote
