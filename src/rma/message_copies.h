// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Copies between memory of this process and memory of a peer, in messages that carry the bytes: for
// registered private memory of ranks that are not mapped here, which the network cannot address.
//
// A copy is cut into windows, two of which are on their way at a time; each window goes in as many
// messages as it takes. Put: the sender pushes the messages of a window, and the target's answer to
// the last one lets the next window go. Get: the asker requests a window, and its last byte
// requests the next. All of it happens in handlers after the start, so that nobody has to wait. The
// owner checks every message against the whole range of the copy: a range that does not fit is
// refused before the first byte.
#pragma once

#include "conduit/engine.h"
#include "memory/memory.h"
#include "rma/direction.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <span>
#include <type_traits>

namespace diomp::rma {

/// Is [address, address + nbytes) memory that peers may reach here? The owner's answer to every
/// message that names an address of it.
bool is_exposed(const memory::segment &own, const memory::directory &directory,
                std::uint64_t address, std::size_t nbytes);

/// Longest message that is sent from here: more would only pass through the caches once more.
inline constexpr std::size_t longest_message = std::size_t{16} << 10;
/// Bytes that a message to this peer has room for after its header.
template <typename Header>
std::size_t room_after(conduit::engine &engine, world_rank peer) {
    return std::min(engine.transport().max_message_bytes(peer), longest_message) - sizeof(Header);
}
/// Sends a message of a header and bytes after it; there is room.
template <typename Header>
void send_with_bytes(conduit::engine &engine, world_rank peer, conduit::handler_id handler,
                     const Header &header, const void *bytes, std::size_t nbytes);

/// Any thread. Create before engine.start().
class message_copies {
public:
    message_copies(conduit::engine &engine, const memory::segment &own,
                   const memory::directory &directory);

    /// `count` until the bytes are there (put: at the target), with OMPX_ERR_ADDRESS if the owner
    /// refuses. `local` and `count` must live until then, or until give_up.
    void start(direction way, world_rank peer, std::uint64_t remote, void *local,
               std::size_t nbytes, conduit::completion &count);
    /// Forgets the copies that count there, and counts them down.
    void give_up(conduit::completion &count);

private:
    struct copy {
        direction way = direction::put;
        world_rank peer;
        std::uint64_t remote = 0;
        std::byte *local = nullptr;
        std::size_t nbytes = 0;
        std::size_t begun = 0; ///< sent (put), asked for (get)
        std::size_t done = 0;
        conduit::completion *count = nullptr;
    };
    /// In front of the bytes (put; answers of get), or alone (requests of get, answers of put).
    struct header {
        std::uint64_t id = 0;
        std::uint64_t remote = 0; ///< of the whole copy
        std::uint64_t nbytes = 0; ///< of the whole copy
        std::uint64_t offset = 0; ///< within it
        std::uint32_t part = 0;   ///< bytes that this message carries, or asks for
        std::uint32_t answer = 0; ///< put: bytes to acknowledge; answers: an OMPX_ERR_* negated
    };

    void begin_window(std::uint64_t id, copy &each);
    void advance(std::uint64_t id, std::size_t nbytes, std::uint32_t failure);
    void send_bytes(world_rank peer, conduit::handler_id handler, header about,
                    const std::byte *from, std::size_t nbytes);
    void on_put(const conduit::message &incoming);
    void on_get(const conduit::message &incoming);
    void on_bytes(const conduit::message &incoming);
    void on_answer(const conduit::message &incoming);

    conduit::engine &engine_;
    const memory::segment &own_;
    const memory::directory &directory_;
    conduit::handler_id put_handler_;
    conduit::handler_id get_handler_;
    conduit::handler_id bytes_handler_;
    conduit::handler_id answer_handler_;
    /// Held while bytes are copied from or to a caller's buffer, so that give_up means it. Taken in
    /// handlers; sends are made under it, waits never.
    std::mutex mutex_;
    std::uint64_t next_id_ = 1;
    std::map<std::uint64_t, copy> copies_;
};

template <typename Header>
void send_with_bytes(conduit::engine &engine, world_rank peer, conduit::handler_id handler,
                     const Header &header, const void *bytes, std::size_t nbytes) {
    static_assert(std::is_trivially_copyable_v<Header>);
    // On the stack: handlers run in exit handlers too, when a thread's own variables are gone.
    std::byte buffer[longest_message];
    std::memcpy(buffer, &header, sizeof(header));
    if (nbytes > 0) {
        std::memcpy(buffer + sizeof(header), bytes, nbytes);
    }
    engine.send(peer, handler, std::span<const std::byte>(buffer, sizeof(header) + nbytes));
}

} // namespace diomp::rma
