// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A connection that transfers frames, after its handshake. Does not block, except
// complete_handshake().
#pragma once

#include "base/function_ref.h"
#include "base/result.h"
#include "base/secure/frame_codec.h"
#include "base/secure/handshake.h"
#include "base/unique_fd.h"

#include <string>
#include <string_view>

namespace diomp::secure {

struct frame_limits {
    std::size_t frame_bytes = std::size_t{16} << 20; ///< of one payload
    std::size_t queue_bytes = std::size_t{64} << 20; ///< maximum bytes waiting to be sent
};

/// One thread may send and one may receive at a time; the two directions share only the socket.
class framed_socket {
public:
    /// `socket` is made non-blocking; `proven` comes from its handshake.
    framed_socket(unique_fd socket, session_keys proven, frame_limits limits = {});

    [[nodiscard]] int fd() const { return socket_.get(); }
    [[nodiscard]] const party &peer() const { return peer_; }
    [[nodiscard]] protection mode() const { return mode_; }

    /// Queues a frame and sends what the socket accepts. OMPX_ERR_ARG: it is empty or longer than
    /// the limit; OMPX_ERR_NOMEM: more than queue_bytes would be waiting, and nothing was queued;
    /// OMPX_ERR_PEER: the connection is closed.
    status send(std::string_view frame);
    /// Sends queued data that the socket accepts. OMPX_ERR_PEER: the connection is closed.
    status send_waiting();
    /// Data is queued: wait until the socket is writable.
    [[nodiscard]] bool has_waiting() const { return sent_ < out_.size(); }

    /// Reads once, up to the size of the buffer, and passes complete frames to `handle`, each valid
    /// during the call. `handle` returns false to stop; the rest comes with the next receive().
    /// OMPX_ERR_PEER: the connection is closed, or a frame was not sealed by the peer.
    status receive(function_ref<bool(std::string_view)> handle);
    /// From now on longer frames are an error.
    void limit_frames(std::size_t nbytes) { decoder_.limit_frames(nbytes); }

private:
    unique_fd socket_;
    party peer_;
    protection mode_;
    frame_limits limits_;
    frame_encoder encoder_;
    frame_decoder decoder_;
    std::string out_;
    std::size_t sent_ = 0; ///< bytes at the front of out_ that have been sent
};

/// Runs a handshake on a connected socket; blocks up to `timeout_s`. OMPX_ERR_PEER: the peer is not
/// authenticated, or has closed the connection; OMPX_ERR_TIMEOUT.
result<session_keys> complete_handshake(int socket, handshake exchange, double timeout_s);

} // namespace diomp::secure
