// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The TCP connection between a client and a service, and frames on it. Before the first frame
// stands the handshake of base/secure: both ends have proved by then that they know the service's
// token, and the client has named the device that it asks for.
#pragma once

#include "base/result.h"
#include "base/secure/frame_codec.h"
#include "base/secure/handshake.h"
#include "base/unique_fd.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace diomp::offload::remote {

/// How the service (`self` is its role) or a client for a device of it takes part in a handshake.
[[nodiscard]] secure::handshake_options handshake_of(const secure::party &self);
[[nodiscard]] constexpr secure::party client_for(std::uint32_t device) {
    return {secure::role::client, device};
}
inline constexpr secure::party the_service{secure::role::service, 0};

/// How many frames have been sent, in memory of two processes: the one that sends, and the one that
/// may go on after its end.
struct frame_count {
    std::atomic<std::uint64_t> begun{0};
    std::atomic<std::uint64_t> complete{0};
};

/// One connection. send: any thread. receive: one thread at a time, beside senders.
class control_link {
public:
    /// Connects, and proves that this process knows the token. Blocks up to `timeout_s` for each
    /// address of `host`, which is a name or an address. OMPX_ERR_PEER: nothing listens there, or
    /// it does not prove that it is the service; OMPX_ERR_TIMEOUT: it does not answer.
    static result<control_link> connect(const std::string &host, int port,
                                        const secure::secret &token, std::uint32_t device,
                                        double timeout_s);
    /// A connection whose handshake is complete; it is sealed, whatever that has agreed on. A peer
    /// whose host falls silent is noticed within about `silence_s`, also when nothing is sent.
    control_link(unique_fd socket, secure::session proven);
    control_link(control_link &&other) noexcept;

    static constexpr int silence_s = 20;

    /// The other end, as it has proved.
    [[nodiscard]] const secure::party &peer() const { return peer_; }

    /// Sends one frame; blocks while the peer does not take it. OMPX_ERR_PEER: it is gone.
    status send(std::string_view packet);
    /// Blocks until a frame has come, up to `timeout_s` (0: without limit). OMPX_ERR_PEER: the
    /// connection is over, OMPX_ERR_TIMEOUT, OMPX_ERR_ARG: longer than allowed, or changed on its
    /// way.
    result<std::string> receive(double timeout_s = 0);
    /// A send that takes longer is an error, and the end of the connection.
    void limit_sending(std::chrono::milliseconds most) const;

    /// Two processes with a copy of this connection share the count: one sends from now on, the
    /// other one after take_over(). `shared` outlives the connection. Not beside send().
    void count_in(frame_count &shared);
    /// The other process has ended; this one sends from now on. OMPX_ERR_PEER: it ended within a
    /// frame, and nothing can follow.
    status take_over();

    [[nodiscard]] int fd() const { return socket_.get(); }
    /// Ends both directions: a receive that blocks returns. Any thread.
    void shut() const;

private:
    status send_bytes(std::string_view bytes) const;
    status read_fully(char *into, std::size_t nbytes, double timeout_s) const;
    status read_growing(std::string &into, std::size_t nbytes, double timeout_s) const;

    unique_fd socket_;
    secure::party peer_;
    std::mutex sending_; ///< over the next two
    secure::frame_encoder encoder_;
    frame_count *count_ = nullptr;
    secure::frame_cipher receiving_;
};

/// Listens at an address ("" is every one) and a port (0: one that is free).
result<unique_fd> listen_at(const std::string &address, int port);
/// The port of a listening socket.
result<int> port_of(int socket);

} // namespace diomp::offload::remote
