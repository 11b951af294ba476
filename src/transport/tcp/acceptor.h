// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The port on which a rank listens.
#pragma once

#include "base/secure/pending_connections.h"
#include "transport/tcp/credentials.h"

#include <atomic>
#include <mutex>
#include <optional>
#include <vector>

namespace diomp::transport::tcp {

class peer;

/// Accepts and authenticates connections, until all peers are connected, or as long as peers may
/// connect again. Any thread.
class acceptor {
public:
    using proven_connection = secure::pending_connections::proven_connection;

    /// `num_peers`: ranks that may connect. `can_reconnect`: any number of times.
    acceptor(int num_peers, bool can_reconnect)
        : num_unconnected_(num_peers), can_reconnect_(can_reconnect) {}
    /// Starts to accept; `own` must outlive this object.
    status start(unique_fd listener, const credentials &own);

    /// Descriptor that is readable when advance() has work.
    [[nodiscard]] int fd() const { return pending_->fd(); }
    /// Returns connections that have been authenticated. Blocks while another thread is in this
    /// call, for the time of some handshakes.
    [[nodiscard]] std::vector<proven_connection> advance();
    /// Whether peers may connect again after their connection was closed.
    [[nodiscard]] bool can_reconnect() const { return can_reconnect_; }
    /// Both sides use a connection. Unless peers may connect again, closes the port after the last
    /// one.
    void note_connected(peer &known);
    /// Closes the port, unless peers may connect again.
    void stop_listening();

private:
    std::mutex mutex_; ///< never held together with that of the connections
    std::optional<secure::pending_connections> pending_;
    std::atomic<int> num_unconnected_;
    bool const can_reconnect_;
};

} // namespace diomp::transport::tcp
