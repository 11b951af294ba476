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

/// Accepts and authenticates connections, until all peers are connected. Any thread.
class acceptor {
public:
    using proven_connection = secure::pending_connections::proven_connection;

    /// `num_peers`: ranks that may connect.
    explicit acceptor(int num_peers) : num_unconnected_(num_peers) {}
    /// Starts to accept; `own` must outlive this object.
    status start(unique_fd listener, const credentials &own);

    /// Descriptor that is readable when advance() has work.
    [[nodiscard]] int fd() const { return pending_->fd(); }
    /// Returns connections that have been authenticated. Returns at once if another thread is in
    /// this call.
    [[nodiscard]] std::vector<proven_connection> advance();
    /// Both sides use a connection, so the peer will not open another one. Closes the port after
    /// the last peer.
    void note_connected(peer &known);
    void stop_listening();

private:
    std::mutex mutex_; ///< never held together with that of the connections
    std::optional<secure::pending_connections> pending_;
    std::atomic<int> num_unconnected_;
};

} // namespace diomp::transport::tcp
