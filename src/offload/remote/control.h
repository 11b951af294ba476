// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The TCP control connection between a client and a service, and its frames. The handshake of
// base/secure precedes the first frame: it has authenticated both peers by the service's token, and
// the client has named the device that it requests.
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

/// Handshake options of the service or of a client that requests one of its devices; `self` says
/// which.
[[nodiscard]] secure::handshake_options handshake_options_for(const secure::party &self);
[[nodiscard]] constexpr secure::party client_party(std::uint32_t device) {
    return {secure::role::client, device};
}
inline constexpr secure::party service_party{secure::role::service, 0};

/// Number of frames sent, in memory shared by two processes: the sender, and the process that may
/// continue sending after the sender has ended. The bytes count from share_count() on.
struct frame_count {
    std::atomic<std::uint64_t> begun{0};
    std::atomic<std::uint64_t> begun_bytes{0}; ///< to the end of the last frame begun
    std::atomic<std::uint64_t> complete{0};
    std::atomic<std::uint64_t> complete_bytes{0}; ///< to the end of the last complete frame
};

/// One connection. send() may be called by any thread, receive() by one thread at a time, also
/// concurrently with send().
class control_connection {
public:
    /// Connects and runs the handshake. Blocks up to `timeout_s` for each address of `host`, which
    /// is a name or an address. Errors: OMPX_ERR_PEER: nothing listens there, or the peer does not
    /// authenticate as the service; OMPX_ERR_TIMEOUT: no response.
    static result<control_connection> connect(const std::string &host, int port,
                                              const secure::secret &token, std::uint32_t device,
                                              double timeout_s);
    /// A connection whose handshake is complete. Frames are always sealed. A peer whose host stops
    /// responding is detected within about `silence_timeout_s`, even if nothing is sent.
    control_connection(unique_fd socket, secure::session_keys proven);
    control_connection(control_connection &&other) noexcept;

    static constexpr int silence_timeout_s = 20;

    /// The authenticated identity of the peer.
    [[nodiscard]] const secure::party &peer() const { return peer_; }

    /// Sends one frame; blocks while the socket's buffers are full. OMPX_ERR_PEER: the connection
    /// is closed.
    status send(std::string_view packet);
    /// Blocks until a frame has been received, up to `timeout_s` (0: without limit). Errors:
    /// OMPX_ERR_PEER: the connection is closed; OMPX_ERR_TIMEOUT; OMPX_ERR_ARG: the frame is longer
    /// than allowed or was changed in transit.
    result<std::string> receive(double timeout_s = 0);
    /// Limits the time of a send. A send that takes longer fails and closes the connection.
    void set_send_timeout(std::chrono::milliseconds timeout) const;

    /// Counts frames in `shared`, for two processes that have a copy of this connection: one sends
    /// from now on, the other after take_over(). `shared` outlives the connection. Must not be
    /// called concurrently with send().
    void share_count(frame_count &shared);
    /// Whether a thread of this process is in the middle of a counted frame. Any thread, also in a
    /// signal handler.
    [[nodiscard]] bool is_sending() const {
        return count_ != nullptr && count_->begun.load() != count_->complete.load();
    }
    /// Call when the other process has ended; this process sends from now on. OMPX_ERR_PEER: the
    /// other process ended in the middle of a frame, so nothing can follow. A frame that it had
    /// begun to count does no harm on a TCP socket, which knows how many bytes were written.
    status take_over();

    [[nodiscard]] int fd() const { return socket_.get(); }
    /// Shuts down both directions; a blocked receive() returns. Any thread.
    void shut_down() const;

private:
    status send_bytes(std::string_view bytes) const;
    /// Number of the frame that follows what the other process has written.
    [[nodiscard]] std::optional<std::uint64_t> next_frame() const;
    status read_fully(char *into, std::size_t nbytes, double timeout_s) const;
    status read_growing(std::string &into, std::size_t nbytes, double timeout_s) const;

    unique_fd socket_;
    secure::party peer_;
    std::mutex send_mutex_; ///< protects the next two
    secure::frame_encoder encoder_;
    frame_count *count_ = nullptr;
    std::uint64_t counted_from_ = 0; ///< bytes written before share_count()
    secure::frame_cipher receiving_;
};

/// Listens at an address ("": all addresses) and a port (0: a free one).
result<unique_fd> listen_at(const std::string &address, int port);
/// The port of a listening socket.
result<int> port_of(int socket);

} // namespace diomp::offload::remote
