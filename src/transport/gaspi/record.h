// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A message in a ring, whose arrival is detected in the ring itself: a notification after it would
// be a second operation and take as long again. GASPI guarantees nothing about bytes that no
// notification follows, not even the order in which they become visible. A record therefore has a
// checksum over all its bytes and has arrived when the sum matches. Needs no GPI-2.
#pragma once

#include "transport/types.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace diomp::transport::gaspi {

/// Header of a message, whose payload follows contiguously. A filler covers the rest of a ring.
struct record {
    /// The record's position as a notification value; differs from that of the record before.
    std::uint32_t stamp = 0;
    std::uint32_t sum = 0;
    std::uint32_t nbytes = 0; ///< of the payload
    handler_id handler = 0;
    std::uint16_t is_filler = 0;
};
static_assert(sizeof(record) == 16);
constexpr std::size_t message_unit = 64;

/// Positions in a ring count units, modulo 2^31. As a notification value a position is odd, since
/// the value must not be 0.
constexpr std::uint32_t position_mask = 0x7fffffff;
constexpr std::uint32_t to_notification(std::uint32_t position) { return position << 1 | 1; }
constexpr std::uint32_t to_position(std::uint32_t notification) { return notification >> 1; }
constexpr std::uint32_t distance(std::uint32_t from, std::uint32_t to) {
    return (to - from) & position_mask;
}
constexpr std::uint32_t units_for(std::size_t nbytes) {
    return static_cast<std::uint32_t>((sizeof(record) + nbytes + message_unit - 1) / message_unit);
}

/// Checksum over a record without the sum itself. A missing byte goes undetected with a probability
/// of 1 in 2^32.
inline std::uint32_t sum_of(const record &head, const std::byte *payload) {
    constexpr std::uint64_t factor = 0x9e3779b97f4a7c15; // 2^64 by the golden ratio, odd
    std::uint64_t sum = factor;
    auto const add = [&](std::uint64_t word) {
        sum = (sum ^ word) * factor;
        sum ^= sum >> 32;
    };
    add(std::uint64_t{head.stamp} << 32 | head.nbytes);
    add(std::uint64_t{head.handler} << 16 | head.is_filler);
    std::size_t at = 0;
    for (; at + sizeof(std::uint64_t) <= head.nbytes; at += sizeof(std::uint64_t)) {
        std::uint64_t word = 0;
        std::memcpy(&word, payload + at, sizeof(word));
        add(word);
    }
    if (at < head.nbytes) {
        std::uint64_t rest = 0;
        std::memcpy(&rest, payload + at, head.nbytes - at);
        add(rest);
    }
    return static_cast<std::uint32_t>(sum);
}

/// Writes a record and its payload.
inline void write_record(std::byte *at, record head, std::span<const std::byte> payload) {
    head.sum = sum_of(head, payload.data());
    std::memcpy(at, &head, sizeof(head));
    if (!payload.empty()) {
        std::memcpy(at + sizeof(head), payload.data(), payload.size());
    }
}

/// Whether the whole record for this position has arrived at `at`, where `space` bytes are left.
/// Sets `head` in that case.
inline bool read_record(std::byte *at, std::uint32_t position, std::size_t space, record &head) {
    std::atomic_ref<std::uint32_t> const stamp(*reinterpret_cast<std::uint32_t *>(at));
    if (stamp.load(std::memory_order_acquire) != to_notification(position)) {
        return false;
    }
    std::memcpy(&head, at, sizeof(head));
    return head.nbytes <= space - sizeof(head) && sum_of(head, at + sizeof(head)) == head.sum;
}

} // namespace diomp::transport::gaspi
