// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sends messages and credit: records in a ring at the receiver, written from its mirror here.
//
// In small jobs the receiver polls all rings. In jobs of many ranks that would take too long: each
// write is followed by a notification of the position where the sender's messages end. The receiver
// returns credit by notifications of the position up to which it has handled messages.
#pragma once

#include "transport/gaspi/queue_pool.h"

namespace diomp::transport::gaspi {

/// Larger operations are cut, so that a peer that receives one shows signs of life.
constexpr std::size_t chunk_bytes = std::size_t{16} << 20;

/// Up to this many ranks, polling all rings costs less than a notification.
constexpr bool polls_rings(std::size_t num_ranks) { return num_ranks <= 64; }

/// Under the lock of the network.
class message_sender {
public:
    message_sender(world_rank self, std::size_t num_ranks, memory &registered, queue_pool &queues)
        : self_(self), num_ranks_(num_ranks), memory_(registered), queues_(queues) {}

    /// False: there is no space for the message. `is_reply`: sent by a handler. It waits for the
    /// next message to that peer or the next advance(), whichever is first: the rank that waited
    /// for the message often sends more, and one write costs half of two.
    bool send(peer &to, handler_id handler, std::span<const std::byte> payload, bool is_reply);
    /// Whether put_with_message() takes this data. Any thread.
    [[nodiscard]] bool supports_data(std::span<const std::byte> source) const;
    /// Uses a message queue, in which GPI-2 keeps the order of the data and the message after it.
    bool put_with_message(peer &to, std::uint64_t offset, std::span<const std::byte> source,
                          handler_id handler, std::span<const std::byte> payload,
                          completion &source_free);
    /// Acknowledges the peer's messages up to this position.
    void send_credit(peer &from, std::uint32_t position);
    /// Reads the peer's acknowledgements.
    void read_credit(peer &to) const;
    /// Posts messages and credit that waited for a queue. True if there were any.
    bool advance();
    /// Drops what waits for a lost peer.
    void fail(peer &lost);

private:
    static constexpr std::size_t max_queued_writes = 6; ///< entries of a queue; a message takes two

    [[nodiscard]] bool has_space_for(peer &to, std::size_t payload_bytes) const;
    bool transmit(peer &to, std::size_t max_outstanding = max_queued_writes);
    void list_untransmitted(peer &to);
    bool send_credits();

    world_rank self_;
    std::size_t num_ranks_;
    memory &memory_;
    queue_pool &queues_;
    std::vector<peer *> untransmitted_; ///< with messages not posted to GPI-2
    std::vector<peer *> credits_due_;
};

} // namespace diomp::transport::gaspi
