// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The TCP connection between a client and a service, and frames on it.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>

namespace diomp::offload::remote {

/// One connection. send: any thread. receive: one thread at a time, beside senders.
class control_link {
public:
    /// Blocks up to `timeout_s`. `host` is a name or an address.
    static result<control_link> connect(const std::string &host, int port, double timeout_s);
    /// A connection that has been accepted. A peer whose host falls silent is noticed within about
    /// `silence_s`, also when nothing is sent.
    explicit control_link(unique_fd socket);
    control_link(control_link &&other) noexcept
        : socket_(std::move(other.socket_)), most_bytes_(other.most_bytes_) {}

    static constexpr int silence_s = 20;

    /// Sends one frame; blocks while the peer does not take it. OMPX_ERR_PEER: it is gone.
    status send(std::string_view packet);
    /// Blocks until a frame has come, up to `timeout_s` (0: without limit). OMPX_ERR_PEER: the
    /// connection is over, OMPX_ERR_TIMEOUT, OMPX_ERR_ARG: longer than allowed.
    result<std::string> receive(double timeout_s = 0);
    /// The largest frame that is taken; more is an error and the end of the connection.
    void limit_frames(std::size_t nbytes) { most_bytes_ = nbytes; }

    /// A send that takes longer is an error, and the end of the connection.
    void limit_sending(std::chrono::milliseconds most) const;

    [[nodiscard]] int fd() const { return socket_.get(); }
    /// Ends both directions: a receive that blocks returns. Any thread.
    void shut() const;

private:
    status read_fully(char *into, std::size_t nbytes, double timeout_s) const;

    unique_fd socket_;
    std::size_t most_bytes_;
    std::mutex sending_;
};

/// Listens at an address ("" is every one) and a port (0: one that is free).
result<unique_fd> listen_at(const std::string &address, int port);
/// The port of a listening socket.
result<int> port_of(int socket);

} // namespace diomp::offload::remote
