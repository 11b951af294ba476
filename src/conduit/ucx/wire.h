// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What travels between the ranks of a UCX conduit. All ranks of a job are the same build on
// machines of the same kind, so structures travel as they lie in memory.
//
// Two kinds of UCX active message: a packet of records (everything small, from one channel, in
// order) and bulk (one large transfer that lands at its address without a copy).
//
// Puts are counted per channel and epoch. A flush closes the epoch and tells its number of puts;
// the target acknowledges it when that many have landed. This is right in whatever order packets
// and bulk arrive, and a put with a fence behind it costs one message and one acknowledgement.
#pragma once

#include "conduit/conduit.h"

#include <cstddef>
#include <cstdint>

namespace diomp::conduit::ucx {

enum class am_id : unsigned { packet = 1, bulk = 2 };

enum class record_kind : std::uint8_t {
    put,       ///< value: address; payload: the bytes
    flush,     ///< value: number of puts of the epoch that ends here
    ack,       ///< value: epoch; channel: of the flush
    get,       ///< value: address; payload: get_body
    get_reply, ///< value: id; payload: the bytes
    message,   ///< value: its number in the channel; handler; payload
    credit,    ///< value: bytes of messages that have been handled
    ping,      ///< asks for a pong
    pong,
};

struct packet_header {
    std::int32_t source; ///< world rank
    std::uint16_t channel;
    std::uint16_t unused;
    std::uint32_t epoch; ///< of the puts in front of the first flush
    std::uint32_t num_bytes;
};

/// Of a get: where both its ends are, seen from who asks.
constexpr std::uint8_t to_byte(memory_ends ends) {
    return static_cast<std::uint8_t>(static_cast<unsigned>(ends.remote) << 4 |
                                     static_cast<unsigned>(ends.local));
}
/// The same, seen from who answers.
constexpr memory_ends answering_ends(std::uint8_t asked) {
    return {static_cast<memory_kind>(asked & 15), static_cast<memory_kind>(asked >> 4)};
}

/// Followed by its payload, padded to record_alignment.
struct record {
    record_kind kind;
    std::uint8_t channel; ///< get: to_byte() of its ends
    std::uint16_t handler;
    std::uint32_t nbytes; ///< of the payload
    std::uint64_t value;
};

struct get_body {
    std::uint64_t nbytes;
    std::uint64_t id;
};

/// The AM header of bulk.
struct bulk_header {
    std::int32_t source;
    std::uint16_t channel;
    record_kind kind;   ///< put, get_reply or message
    memory_kind memory; ///< put: where it goes
    std::uint32_t epoch;
    std::uint16_t handler; ///< message: its handler, and its payload behind this header
    std::uint16_t payload_bytes;
    std::uint64_t value;  ///< put: address; get_reply: id
    std::uint64_t offset; ///< get_reply: of this piece
};

/// Payload of a message with bulk data: it lies in the AM header.
constexpr std::size_t most_bulk_payload_bytes = 128;

constexpr std::size_t record_alignment = 8;
constexpr std::size_t packet_bytes = 16384;
/// Transfers up to this size travel in packets.
constexpr std::size_t small_bytes = 8192;
constexpr std::size_t message_bytes = 8192;
/// Where UCX would only copy, large transfers are cut: each piece fits one of UCX's segments, so it
/// is copied once, from there to its place, while the next ones travel. A message costs some 9 us
/// over TCP.
constexpr std::size_t piece_bytes = std::size_t{256} << 10;

constexpr std::size_t padded(std::size_t nbytes) {
    return (nbytes + record_alignment - 1) / record_alignment * record_alignment;
}
static_assert(sizeof(packet_header) + sizeof(record) + padded(small_bytes) <= packet_bytes);
static_assert(sizeof(packet_header) + sizeof(record) + padded(message_bytes) <= packet_bytes);

} // namespace diomp::conduit::ucx
