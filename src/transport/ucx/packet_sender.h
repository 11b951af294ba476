// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Records to one peer, which are coalesced in packets.
#pragma once

#include "transport/ucx/worker.h"

namespace diomp::transport::ucx {

/// Under the worker's lock.
class packet_sender {
public:
    explicit packet_sender(endpoint &owner);
    ~packet_sender();
    packet_sender(const packet_sender &) = delete;
    packet_sender &operator=(const packet_sender &) = delete;

    /// Sent in each message of the endpoint, see packet_prover.h.
    [[nodiscard]] std::uint64_t proof() const { return proof_; }

    /// Adds a record to the open packet, which is sent first if it has no space left. Returns the
    /// buffer for the payload.
    std::byte *append(record_kind kind, std::uint64_t value, std::size_t nbytes,
                      std::uint16_t handler = 0, std::uint8_t auxiliary = 0);
    /// Adds a message, with its sequence number.
    std::byte *append_message(std::size_t nbytes, std::uint16_t handler) {
        return append(record_kind::message, next_message_++, nbytes, handler);
    }
    /// Sends the open packet, if there is one.
    void transmit();
    /// Sends the open packet now, or, if much was sent since the last progress, with the next
    /// progress.
    void transmit_soon();
    /// Sends the open packet with the next progress.
    void transmit_with_progress() { is_urgent_ = true; }
    /// Called by progress for listed objects. Sends the open packet if it is urgent or old enough;
    /// true: the object is no longer listed.
    bool transmit_if_due(std::chrono::steady_clock::time_point now);

private:
    endpoint &owner_;
    std::uint64_t const proof_;
    packet *open_ = nullptr;
    std::chrono::steady_clock::time_point open_since_; ///< valid if open_was_seen_
    bool open_was_seen_ = false;                       ///< by progress
    bool is_urgent_ = false;                           ///< the next progress sends the open packet
    bool is_listed_ = false;                           ///< in the worker's pending_packets
    std::uint64_t last_round_ = 0; ///< of progress, at the last packet that was sent at once
    int num_sent_in_round_ = 0;    ///< packets sent in that round
    std::uint64_t next_message_ = 0;
};

} // namespace diomp::transport::ucx
