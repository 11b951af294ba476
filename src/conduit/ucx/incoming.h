// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What arrives at this rank: puts land, gets and flushes become replies, messages are kept. All
// of it happens inside progress of worker 0, under its lock; nothing is sent and no handler runs
// there. The network sends the replies after progress and hands the messages over without any lock.
#pragma once

#include "conduit/message_queue.h"
#include "conduit/ucx/peer.h"

#include <unordered_map>
#include <vector>

namespace diomp::conduit::ucx {

/// Something to send once progress is over.
struct reply {
    world_rank to;
    record_kind kind = record_kind::ack;
    std::uint8_t channel = 0;
    std::uint64_t value = 0;   ///< as in the record that is sent
    std::uint64_t address = 0; ///< get_reply: what is to be read here
    std::uint64_t nbytes = 0;
    memory_ends ends; ///< likewise
};

/// How the receiver finds its peers: nullptr if never spoken to.
using peer_lookup = std::function<peer *(world_rank)>;

/// Counts the puts of one channel of one source, until each epoch is complete.
class epoch_counter {
public:
    /// True if this completes the epoch.
    bool landed(std::uint32_t epoch, std::uint64_t count);
    bool closed(std::uint32_t epoch, std::uint64_t expected);

private:
    struct open_epoch {
        std::uint32_t number;
        std::uint64_t landed;
        std::uint64_t expected;
    };
    static constexpr std::uint64_t unknown = ~std::uint64_t{0};
    open_epoch &find(std::uint32_t epoch);
    bool settle(open_epoch &epoch);

    std::vector<open_epoch> open_; ///< one or two, as a rule
};

class incoming {
public:
    /// Installs the receiving callbacks; must live as long as the worker.
    static result<std::unique_ptr<incoming>> create(worker &receiver, arrivals &arrived,
                                                    peer_lookup find_peer);

    /// Under the worker's lock.
    [[nodiscard]] std::vector<reply> &replies() { return replies_; }

private:
    /// A bulk transfer on its way into memory.
    struct bulk_receive {
        incoming *owner;
        bulk_header header;
        std::uint64_t nbytes;
    };

    incoming(worker &receiver, arrivals &arrived, peer_lookup find_peer)
        : receiver_(receiver), arrived_(arrived), find_peer_(std::move(find_peer)) {}

    static ucs_status_t on_packet(void *self, const void *header, std::size_t header_length,
                                  void *data, std::size_t nbytes, const ucp_am_recv_param_t *info);
    static ucs_status_t on_bulk(void *self, const void *header, std::size_t header_length,
                                void *data, std::size_t nbytes, const ucp_am_recv_param_t *info);
    static void on_bulk_received(void *request, ucs_status_t code, std::size_t nbytes,
                                 void *user_data);

    void heard(world_rank source);
    void read_packet(const std::byte *bytes, std::size_t nbytes);
    void read_record(const packet_header &from, const record &head, const std::byte *payload);
    void finish_get(world_rank source, std::uint64_t id, const std::byte *bytes,
                    std::size_t nbytes);
    void finish_bulk(const bulk_header &header, std::size_t nbytes, int code);
    void count_landed(world_rank source, std::uint16_t channel, std::uint32_t epoch,
                      std::uint64_t count);
    void acknowledge(world_rank source, std::uint16_t channel, std::uint32_t epoch);
    epoch_counter &counter(world_rank source, std::uint16_t channel);

    worker &receiver_;
    arrivals &arrived_;
    peer_lookup find_peer_;
    std::vector<reply> replies_;
    std::unordered_map<std::uint64_t, epoch_counter> counters_; ///< by source and channel
    std::uint64_t last_key_ = ~std::uint64_t{0};
    epoch_counter *last_counter_ = nullptr;
};

} // namespace diomp::conduit::ucx
