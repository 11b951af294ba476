// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The world of a client and its sessions: an address space like that of a job of ranks, with the
// client as rank 0, followed by one session per device. The control connections are its launcher.
//
// Each rank is treated as a separate node, so all data goes through the network conduit. A device's
// memory is its rank's slot in the arena: a device address is valid in the whole world, and memory
// of the client has no such address.
#pragma once

#include "base/result.h"
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

/// Launcher of rank 0. `sessions`: the connections, in the order of their ranks from 1 on.
std::unique_ptr<launch::launcher> make_client_launcher(std::vector<control_connection *> sessions,
                                                       host_scope scope, double timeout_s,
                                                       output_handler on_output = {});
/// Launcher of a session.
std::unique_ptr<launch::launcher> make_session_launcher(control_connection &client, int rank,
                                                        int size, host_scope scope,
                                                        double timeout_s);

struct world_options {
    std::string conduit = "tcp";
    std::size_t memory_bytes = 0; ///< of the largest device; the value of rank 0 is used
    int spin_count = 2000;
    double dead_peer_timeout_s = 30;
    bool encrypts_data = false; ///< the same on all ranks
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
    [[nodiscard]] std::uint64_t memory_of(world_rank owner) const;

    void send(world_rank to, transport::handler_id handler, std::string_view bytes) {
        engine_->send(to, handler, std::as_bytes(std::span(bytes)));
    }

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
    status publish_device_memory(const world_options &options);
    status collect_device_memory();

    std::unique_ptr<launch::launcher> launcher_;
    std::unique_ptr<transport::arena> arena_;
    std::unique_ptr<transport::conduit> conduit_;
    std::unique_ptr<messaging::engine> engine_;
    std::vector<std::optional<transport::memory_kind>> device_memory_; ///< [rank]
};

} // namespace diomp::offload::remote
