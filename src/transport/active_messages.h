// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Active messages between ranks. All calls are thread-safe.
#pragma once

#include "transport/types.h"

namespace diomp::transport {

class active_messages {
public:
    virtual ~active_messages() = default;

    /// Queues a message of at most the transport's max_message_bytes; messages of one thread to one
    /// peer arrive in order. false: the queue is full; make progress and retry. Never blocks. The
    /// payload can be reused on return.
    [[nodiscard]] virtual bool try_send(world_rank peer, handler_id handler,
                                        std::span<const std::byte> payload) = 0;
    /// Makes progress and calls the handler for each waiting message; returns their number. 0 at
    /// once if another thread is doing so.
    virtual int poll(message_handler handle) = 0;
    /// True if messages wait for poll().
    [[nodiscard]] virtual bool has_messages() const = 0;
};

/// Messages with data, which a network moves without a copy where it can.
class am_long_transport {
public:
    virtual ~am_long_transport() = default;

    /// Starts to send an AM long: a payload of at most 128 bytes, followed by data. It goes to the
    /// peer's am_long_handler, unordered with all other operations. `source_free` counts until the
    /// data can be reused. false: nothing was started, because the queue is full or the network
    /// does not support this size or peer (network_capabilities::max_am_long). Never blocks.
    virtual result<bool> send_long(world_rank peer, handler_id handler,
                                   std::span<const std::byte> payload,
                                   std::span<const std::byte> data, completion &source_free) = 0;
    /// Starts a put, followed by a message whose handler runs when the bytes are visible at the
    /// target, unordered with all other operations. The run of the handler is the only sign of
    /// completion; no flush covers these bytes. `source_free` as in rma_transport::put. false:
    /// nothing was started, because the queue is full or the network does not support this size or
    /// peer. Never blocks.
    virtual result<bool> put_with_message(world_rank peer, std::uint64_t remote_address,
                                          std::span<const std::byte> source, handler_id handler,
                                          std::span<const std::byte> payload,
                                          completion &source_free) = 0;
    /// Sets the handler of AM longs and the callback that chooses their buffers. Call before the
    /// first transfer, and with empty functions at the end. Networks that cannot choose the buffer
    /// do not call `find_buffer`.
    virtual void set_am_long_handler(const am_long_handler &handle,
                                     const recv_buffer_callback &find_buffer) = 0;
    /// Revokes a buffer that the callback has returned: data still in transit goes to another
    /// buffer. Must not be called from the handler or the callback.
    virtual void revoke_recv_buffer(const std::byte *buffer) = 0;
};

} // namespace diomp::transport
