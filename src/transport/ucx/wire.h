// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The wire format of the UCX conduit. All ranks of a job run the same build on machines of the same
// kind, so structures are sent as they lie in memory.
//
// There are two kinds of UCX active message: a packet of records (everything small, from one
// endpoint, in order) and am_long (one large transfer that is written to its address without a
// copy).
//
// Puts are counted per endpoint and epoch. A flush closes the epoch and carries its number of puts;
// the target acknowledges it after that many. This is correct in any order of arrival of packets
// and am_long messages, and a put with a flush costs one message and one acknowledgement.
#pragma once

#include "transport/types.h"

#include <cstddef>
#include <cstdint>

namespace diomp::transport::ucx {

enum class am_id : unsigned { packet = 1, am_long = 2 };

enum class record_kind : std::uint8_t {
    put,       ///< value: address; payload: the bytes
    flush,     ///< value: number of puts of the epoch that it closes
    ack,       ///< value: epoch; endpoint: that of the flush
    get,       ///< value: address; payload: get_body
    get_reply, ///< value: id; payload: the bytes
    message,   ///< value: sequence number in the endpoint; handler; payload
    credit,    ///< value: bytes of messages that have been handled
    ping,      ///< requests a pong
    pong,
};

/// Limit of endpoints of a rank to another one.
constexpr std::uint16_t max_endpoints = 16;

/// Begins every message. A receiver drops it unless `proof` is that of packet_prover.
struct packet_header {
    std::uint64_t proof;
    std::int32_t source; ///< world rank
    std::uint16_t endpoint;
    std::uint16_t unused;
    std::uint32_t epoch; ///< of the puts before the first flush
    std::uint32_t unused_too;
};

/// Encodes the kinds of memory of a get, as the initiator sees them.
constexpr std::uint8_t to_byte(memory_kinds kinds) {
    return static_cast<std::uint8_t>(static_cast<unsigned>(kinds.remote) << 4 |
                                     static_cast<unsigned>(kinds.local));
}
/// Decodes to_byte(), as the target of the get sees them.
constexpr memory_kinds kinds_at_target(std::uint8_t requested_kinds) {
    return {static_cast<memory_kind>(requested_kinds & 15),
            static_cast<memory_kind>(requested_kinds >> 4)};
}

/// Header of a record; its payload follows, padded to record_alignment.
struct record {
    record_kind kind;
    std::uint8_t endpoint; ///< get: to_byte() of its memory kinds
    std::uint16_t handler;
    std::uint32_t nbytes; ///< of the payload
    std::uint64_t value;
};

struct get_body {
    std::uint64_t nbytes;
    std::uint64_t id;
};

/// The AM header of am_long.
struct am_long_header {
    std::uint64_t proof; ///< as in packet_header
    std::int32_t source;
    std::uint16_t endpoint;
    record_kind kind;   ///< put, get_reply or message
    memory_kind memory; ///< put: kind of the destination
    std::uint32_t epoch;
    std::uint16_t handler; ///< message: its handler; its payload follows this header
    std::uint16_t payload_bytes;
    std::uint64_t value;  ///< put: address; get_reply: id
    std::uint64_t offset; ///< get_reply: of this chunk
};

/// Payload of a message with long data, which is sent in the AM header.
constexpr std::size_t max_am_long_payload_bytes = 128;

constexpr std::size_t record_alignment = 8;
constexpr std::size_t packet_bytes = 16384;
/// Transfers up to this size are sent in packets.
constexpr std::size_t max_packed_bytes = 8192;
constexpr std::size_t max_message_payload_bytes = 8192;
/// Where UCX has no zero-copy protocol, large transfers are sent in chunks. A chunk fits one of
/// UCX's segments, so it is copied only once, from there to its destination, while the next ones
/// are in flight. A message costs some 9 us over TCP.
constexpr std::size_t chunk_bytes = std::size_t{256} << 10;

constexpr std::size_t padded(std::size_t nbytes) {
    return (nbytes + record_alignment - 1) / record_alignment * record_alignment;
}
static_assert(sizeof(packet_header) + sizeof(record) + padded(max_packed_bytes) <= packet_bytes);
static_assert(sizeof(packet_header) + sizeof(record) + padded(max_message_payload_bytes) <=
              packet_bytes);

} // namespace diomp::transport::ucx
