// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The two message rings of a peer: records in memory of the receiver, written from a mirror at the
// sender. A record is contiguous; a filler record skips the remainder at the end of the ring. Needs
// no GPI-2.
#pragma once

#include "transport/gaspi/record.h"

#include <algorithm>

namespace diomp::transport::gaspi {

/// The mirror of the ring of messages to a peer. Under the lock of the network; any thread may call
/// num_unacknowledged().
class send_ring {
public:
    send_ring(std::byte *mirror, std::uint32_t num_units)
        : mirror_(mirror), num_units_(num_units) {}

    /// Whether any message was sent.
    [[nodiscard]] bool is_used() const { return sent_.load() != 0; }
    /// Units of messages that the peer has not acknowledged.
    [[nodiscard]] std::uint32_t num_unacknowledged() const {
        return distance(acknowledged_.load(std::memory_order_relaxed),
                        sent_.load(std::memory_order_relaxed));
    }
    /// The peer has handled messages up to this position.
    void acknowledge(std::uint32_t position) {
        acknowledged_.store(position, std::memory_order_relaxed);
    }
    /// Whether a message would fill more than half of the ring: acknowledgements are worth reading.
    [[nodiscard]] bool is_half_full_with(std::size_t payload_bytes) const {
        return num_unacknowledged() + units_wanted(payload_bytes) > num_units_ / 2;
    }
    [[nodiscard]] bool has_space_for(std::size_t payload_bytes) const {
        return num_unacknowledged() + units_wanted(payload_bytes) <= num_units_;
    }
    /// Writes a message to the mirror. There must be space.
    void append(handler_id handler, std::span<const std::byte> payload) {
        if (units_left() < units_for(payload.size())) {
            append_record({.is_filler = 1}, {}, units_left());
        }
        append_record({.nbytes = static_cast<std::uint32_t>(payload.size()), .handler = handler},
                      payload, units_for(payload.size()));
    }

    /// Contiguous records that are not in the peer's ring yet.
    struct unsent {
        std::size_t offset;   ///< in the ring
        std::uint32_t nbytes; ///< 0: none
        std::uint32_t end;    ///< position
    };
    [[nodiscard]] unsent next_unsent() const {
        std::uint32_t const at = transmitted_ % num_units_;
        std::uint32_t const units = std::min(distance(transmitted_, sent_), num_units_ - at);
        return {at * message_unit, static_cast<std::uint32_t>(units * message_unit),
                (transmitted_ + units) & position_mask};
    }
    /// The chunk was posted to GPI-2.
    void note_transmitted(const unsent &posted) { transmitted_ = posted.end; }
    [[nodiscard]] bool is_all_transmitted() const { return transmitted_ == sent_; }
    [[nodiscard]] const std::byte *at(const unsent &which) const { return mirror_ + which.offset; }

private:
    /// Contiguous units up to the end of the ring.
    [[nodiscard]] std::uint32_t units_left() const { return num_units_ - sent_ % num_units_; }
    /// Units of a message, with the filler before it.
    [[nodiscard]] std::uint32_t units_wanted(std::size_t payload_bytes) const {
        std::uint32_t const units = units_for(payload_bytes);
        return units_left() < units ? units_left() + units : units;
    }
    void append_record(record head, std::span<const std::byte> payload, std::uint32_t units) {
        head.stamp = to_notification(sent_);
        write_record(mirror_ + sent_ % num_units_ * message_unit, head, payload);
        sent_.store((sent_ + units) & position_mask, std::memory_order_relaxed);
    }

    std::byte *mirror_;
    std::uint32_t num_units_;
    std::atomic<std::uint32_t> sent_{0};         ///< end of the last message
    std::atomic<std::uint32_t> acknowledged_{0}; ///< end of what the peer has handled
    std::uint32_t transmitted_ = 0;              ///< end of what was posted to GPI-2
};

/// The ring in which messages of a peer arrive. One thread at a time; any thread may call find().
class receive_ring {
public:
    receive_ring(std::byte *ring, std::uint32_t num_units) : ring_(ring), num_units_(num_units) {}

    /// Whether the next record has arrived; sets `head` in that case.
    bool find(record &head) const {
        return read_record(next(), received_, units_left() * message_unit, head);
    }
    /// Payload of the next record, which find() has found.
    [[nodiscard]] std::span<const std::byte> payload_of(const record &head) const {
        return {next() + sizeof(head), head.nbytes};
    }
    /// The next record has been handled.
    void consume(const record &head) {
        std::uint32_t const units = head.is_filler != 0 ? units_left() : units_for(head.nbytes);
        received_.store((received_ + units) & position_mask, std::memory_order_relaxed);
    }
    /// End of the last message handled.
    [[nodiscard]] std::uint32_t position() const { return received_; }
    [[nodiscard]] std::uint32_t num_units() const { return num_units_; }
    /// Whether the sender should get credit for what was handled since take_credit().
    [[nodiscard]] bool is_credit_due() const {
        return distance(credited_, received_) >= num_units_ / 4;
    }
    /// The position to acknowledge.
    [[nodiscard]] std::uint32_t take_credit() { return credited_ = received_; }

private:
    [[nodiscard]] std::byte *next() const { return ring_ + received_ % num_units_ * message_unit; }
    [[nodiscard]] std::uint32_t units_left() const { return num_units_ - received_ % num_units_; }

    std::byte *ring_;
    std::uint32_t num_units_;
    std::atomic<std::uint32_t> received_{0};
    std::uint32_t credited_ = 0; ///< position of the last credit
};

} // namespace diomp::transport::gaspi
