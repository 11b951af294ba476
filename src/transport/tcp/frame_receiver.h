// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The incoming frames of a connection.
#pragma once

#include "transport/tcp/byte_stream.h"
#include "transport/tcp/wire.h"

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace diomp::transport::tcp {

class connection;

/// Handles received frames. Called by one thread per connection at a time; may send.
class frame_handler {
public:
    virtual ~frame_handler() = default;
    /// Returns the buffer for the body of a frame; `front` holds the head.head bytes before it.
    /// nullptr: the frame is invalid, and the connection fails.
    virtual std::byte *find_body_buffer(connection &conn, const frame &head,
                                        std::span<const std::byte> front) = 0;
    /// Handles a frame whose body has been received. False: the frame is invalid.
    virtual bool handle_frame(connection &conn, const frame &head, std::span<const std::byte> front,
                              const std::byte *body) = 0;
};

/// Reads from the byte stream of a connection and calls a handler for each frame. The body of a
/// frame is received directly into the buffer that the handler names.
class frame_receiver {
public:
    frame_receiver(connection &conn, byte_stream &stream) : conn_(conn), stream_(stream) {}

    /// True if anything was read. Returns at once if another thread is reading, or if the
    /// connection is not open.
    bool receive(frame_handler &handler);
    /// A body that is being received into `buffer` goes to scratch memory from now on.
    void revoke_body_buffer(const std::byte *buffer);
    /// For the connection: no thread receives while this is held.
    [[nodiscard]] std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }
    /// Under lock(): forgets an incomplete frame of a socket that is no longer used, and frees the
    /// memory for frames.
    void discard();
    /// For handlers: memory for bodies without a buffer of their own; valid until handle_frame()
    /// has returned.
    [[nodiscard]] std::byte *scratch(std::size_t nbytes) {
        scratch_.resize(std::max(scratch_.size(), nbytes));
        return scratch_.data();
    }

private:
    // Under mutex_:
    [[nodiscard]] std::size_t space_after_body() const;
    [[nodiscard]] bool read_some(frame_handler &handler);
    bool parse(frame_handler &handler);
    [[nodiscard]] bool has_header() const;
    bool begin_frame(frame_handler &handler);
    bool end_frame(frame_handler &handler);

    connection &conn_;
    byte_stream &stream_;
    std::mutex mutex_; ///< before the locks of the connection
    std::unique_ptr<std::byte[]> buffer_;
    std::size_t begin_ = 0; ///< of the bytes not yet parsed
    std::size_t end_ = 0;
    std::optional<frame> current_;                          ///< frame whose body is being received
    std::array<std::byte, max_am_long_header_bytes> front_; ///< of current_
    std::byte *body_ = nullptr;
    std::size_t num_body_ = 0; ///< bytes received
    std::vector<std::byte> scratch_;
};

} // namespace diomp::transport::tcp
