// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What travels on a connection, in the byte order of the job's hosts.
//
// Two ranks have one connection, whoever opens it. If both do at once, that of the lower rank
// counts: so a higher rank sends nothing on its own connection before it is welcome, or before the
// lower rank's connection comes instead. Before the first frame stands the handshake of
// base/secure, by which both ends prove that they are these ranks of this job. With
// DIOMP_ENCRYPT=all frames travel inside sealed records (sealed_stream.h).
#pragma once

#include "conduit/conduit.h"

#include <cstdint>

namespace diomp::conduit::tcp {

enum class kind : std::uint8_t {
    // Requests.
    put = 1, ///< nbytes of data to `address`
    get,     ///< nbytes from `address`; answered by `data` with the same number
    message, ///< nbytes to `handler`
    bulk,    ///< `head` bytes of payload, then nbytes of data to `handler`
    flush,   ///< answered by `flushed` with the same number when all puts before have landed
    ping,    ///< answered by `handled`
    handled, ///< `number` bytes of messages have been handled; an answer, too
    welcome, ///< from the rank that has accepted it: this connection is the one
    // Answers.
    data,
    flushed,
};

struct frame {
    kind what{};
    std::uint8_t unused = 0;
    handler_id handler = 0;
    std::uint32_t head = 0;
    std::uint64_t nbytes = 0; ///< that follow, but for a get
    std::uint64_t address = 0;
    std::uint64_t number = 0;
};
static_assert(sizeof(frame) == 32);

constexpr std::size_t body_bytes(const frame &head) {
    return head.what == kind::get ? 0 : head.nbytes;
}

/// Of these frames, as the handshake compares it.
inline constexpr std::uint32_t protocol_version = 4;

inline constexpr std::size_t most_message_bytes = 8192;
inline constexpr std::size_t most_bulk_bytes = 1024 * 1024;
inline constexpr std::size_t most_bulk_head_bytes = 128;

} // namespace diomp::conduit::tcp
