// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The wire format of a connection, in the byte order of the job's hosts.
//
// Two ranks share one connection, which either may open. If both open one at once, that of the
// lower rank is used: a higher rank sends nothing on its own connection until it receives
// `conn_ack` there, or until the lower rank's connection replaces it. A rank with many connections
// closes those that it has not used for long, and opens them again: it sends `close_request`, the
// other side `close_ack`, each as its last frame, so that no frame is lost; if both request it, the
// lower rank's counts. The first frame follows the handshake of base/secure, in which both sides
// authenticate as these ranks of this job. With DIOMP_ENCRYPT=all frames are sent inside sealed
// records (sealed_stream.h).
#pragma once

#include "transport/types.h"

#include <cstdint>

namespace diomp::transport::tcp {

enum class kind : std::uint8_t {
    // Requests.
    put = 1,      ///< nbytes of data to `address`
    get,          ///< nbytes from `address`; the reply is `data` with the same number
    message,      ///< nbytes to `handler`
    am_long,      ///< `head` bytes of payload, then nbytes of data to `handler`
    flush,        ///< the reply is `flushed` with the same number, once all earlier puts are done
    ping,         ///< the reply is `handled`
    handled,      ///< credit: `number` bytes of messages have been handled; also a reply
    conn_ack,     ///< from the rank that accepted the connection: it is the one to use
    conn_confirm, ///< the reply: the connection is in use
    // The end of an idle connection; both sides may then open another one. `number`: as in
    // `handled`.
    close_request, ///< the last frame of its sender, until the reply
    close_ack,     ///< the last frame of its sender; the receiver closes
    close_nack,    ///< the connection stays
    // Replies.
    data,
    flushed,
};

struct frame {
    kind what{};
    std::uint8_t unused = 0;
    handler_id handler = 0;
    std::uint32_t head = 0;
    std::uint64_t nbytes = 0; ///< of the body; a get has none
    std::uint64_t address = 0;
    std::uint64_t number = 0;
};
static_assert(sizeof(frame) == 32);

constexpr std::size_t body_bytes(const frame &head) {
    return head.what == kind::get ? 0 : head.nbytes;
}

/// Version of the frames, which the handshake compares.
inline constexpr std::uint32_t protocol_version = 5;

inline constexpr std::size_t max_message_payload_bytes = 8192;
inline constexpr std::size_t max_am_long_payload_bytes = 1024 * 1024;
inline constexpr std::size_t max_am_long_header_bytes = 128;

} // namespace diomp::transport::tcp
