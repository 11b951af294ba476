// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Copies between memory of this process and memory of a peer, in messages that carry the bytes: for
// registered private memory of ranks that are not mapped here, which the network cannot address.
//
// A copy is divided into windows, two of which are in flight at a time; a window takes one or more
// messages. Put: the sender pushes the messages of a window, and the target's acknowledgement of
// the last one starts the next window. Get: the initiator requests a window, and the arrival of its
// last byte requests the next. After the start, handlers do all of this; no thread waits. The owner
// checks every message against the whole range of the copy: an invalid range is refused before the
// first byte is copied.
#pragma once

#include "messaging/engine.h"
#include "rma/path.h"
#include "transport/conduit.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <span>
#include <type_traits>

namespace diomp::memory {
class directory;
class segment;
} // namespace diomp::memory

namespace diomp::rma {

/// What a message does with the memory that it names.
enum class access : bool { read, write };
/// Whether peers may access [address, address + nbytes) of this rank: in its segment, in the memory
/// of its host devices, or registered, and not read-only if they write. The owner checks this for
/// every message that names an address.
bool is_exposed(const memory::segment &own, const memory::directory &directory,
                std::uint64_t address, std::size_t nbytes, access how);
/// The owner has refused a transfer, for the reasons that is_exposed() has.
error refused_error(world_rank owner, access how);

/// Longest message of a copy: longer ones would only pass through the caches once more.
inline constexpr std::size_t max_copy_message_bytes = std::size_t{16} << 10;
/// Bytes of payload after the header in a message to this peer.
template <typename Header>
std::size_t payload_space(messaging::engine &engine, world_rank peer) {
    return std::min(engine.transport().max_message_bytes(peer), max_copy_message_bytes) -
           sizeof(Header);
}
/// Sends a message of a header and bytes after it. `nbytes` is at most payload_space().
template <typename Header>
void send_with_bytes(messaging::engine &engine, world_rank peer, transport::handler_id handler,
                     const Header &header, const void *bytes, std::size_t nbytes);

/// Any thread. Create before engine.start().
class message_copies {
public:
    message_copies(messaging::engine &engine, const memory::segment &own,
                   const memory::directory &directory);

    /// Starts a copy. `count` is pending until the bytes have arrived (put: at the target), and
    /// fails with OMPX_ERR_ADDRESS if the owner refuses. `local` and `count` must live until then,
    /// or until cancel(). Does not block.
    void start(direction dir, world_rank peer, std::uint64_t remote, void *local,
               std::size_t nbytes, transport::completion &count);
    /// Cancels the copies of `count`, which fail with OMPX_ERR_TIMEOUT.
    void cancel(transport::completion &count);

private:
    struct copy {
        direction dir = direction::put;
        world_rank peer;
        std::uint64_t remote = 0;
        std::byte *local = nullptr;
        std::size_t nbytes = 0;
        std::size_t requested = 0; ///< sent (put), requested (get)
        std::size_t done = 0;
        transport::completion *count = nullptr;
    };
    /// Before the bytes (put, replies to get), or alone (requests of get, acknowledgements of put).
    struct header {
        std::uint64_t id = 0;
        std::uint64_t remote = 0;      ///< of the whole copy
        std::uint64_t nbytes = 0;      ///< of the whole copy
        std::uint64_t offset = 0;      ///< within it
        std::uint32_t chunk_bytes = 0; ///< bytes that this message carries or requests
        std::uint32_t ack = 0; ///< put: bytes to acknowledge; replies: an OMPX_ERR_* negated
    };

    void begin_window(std::uint64_t id, copy &each);
    void advance(std::uint64_t id, std::size_t nbytes, std::uint32_t failure);
    void send_bytes(world_rank peer, transport::handler_id handler, header head,
                    const std::byte *from, std::size_t nbytes);
    void on_put(const transport::message &incoming);
    void on_get(const transport::message &incoming);
    void on_bytes(const transport::message &incoming);
    void on_ack(const transport::message &incoming);

    messaging::engine &engine_;
    const memory::segment &own_;
    const memory::directory &directory_;
    transport::handler_id put_handler_;
    transport::handler_id get_handler_;
    transport::handler_id bytes_handler_;
    transport::handler_id ack_handler_;
    /// Held while bytes are copied from or to a caller's buffer, so that no copy touches it after
    /// cancel(). Taken in handlers; sends are made under it, waits never.
    std::mutex mutex_;
    std::uint64_t next_id_ = 1;
    std::map<std::uint64_t, copy> copies_;
};

template <typename Header>
void send_with_bytes(messaging::engine &engine, world_rank peer, transport::handler_id handler,
                     const Header &header, const void *bytes, std::size_t nbytes) {
    static_assert(std::is_trivially_copyable_v<Header>);
    // On the stack: handlers also run in exit handlers, after the thread-local variables are gone.
    std::byte buffer[max_copy_message_bytes];
    std::memcpy(buffer, &header, sizeof(header));
    if (nbytes > 0) {
        std::memcpy(buffer + sizeof(header), bytes, nbytes);
    }
    engine.send(peer, handler, std::span<const std::byte>(buffer, sizeof(header) + nbytes));
}

} // namespace diomp::rma
