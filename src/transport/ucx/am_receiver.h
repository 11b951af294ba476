// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Receives the active messages of all peers: executes puts, collects the replies that gets and
// flushes need, and queues messages. All of it runs inside progress of worker 0, under its lock; it
// sends nothing and calls no handler. After progress the network sends the replies and dispatches
// the messages without any lock.
#pragma once

#include "base/rate_limiter.h"
#include "transport/common/message_queue.h"
#include "transport/ucx/peer.h"

#include <unordered_map>
#include <vector>

namespace diomp::transport::ucx {

/// A record to send after progress.
struct reply {
    world_rank to;
    record_kind kind = record_kind::ack;
    std::uint8_t endpoint = 0;
    std::uint64_t value = 0;   ///< as in the record that is sent
    std::uint64_t address = 0; ///< get_reply: source address in this process
    std::uint64_t nbytes = 0;
    memory_kinds kinds; ///< get_reply
};

/// Finds a peer; nullptr if there was no communication with it.
using peer_lookup = std::function<peer *(world_rank)>;

/// Counts the puts of one endpoint of one source, per epoch.
class epoch_counter {
public:
    /// Counts completed puts. True if this completes the epoch.
    bool completed(std::uint32_t epoch, std::uint64_t count);
    /// Records the number of puts of a closed epoch. True if this completes the epoch.
    bool close_epoch(std::uint32_t epoch, std::uint64_t expected);

private:
    struct open_epoch {
        std::uint32_t number;
        std::uint64_t completed;
        std::uint64_t expected;
    };
    static constexpr std::uint64_t unknown = ~std::uint64_t{0};
    open_epoch &find(std::uint32_t epoch);
    bool close_if_complete(open_epoch &epoch);

    std::vector<open_epoch> open_; ///< usually one or two
};

/// An endpoint that sends to this rank.
struct sender {
    std::uint64_t proof; ///< that its messages must carry
    epoch_counter puts;
};

class am_receiver {
public:
    /// Installs the receive callbacks. The object must outlive the worker's progress.
    static result<std::unique_ptr<am_receiver>> create(worker &receiver, arrivals &arrived,
                                                       peer_lookup find_peer);

    /// Under the worker's lock.
    [[nodiscard]] std::vector<reply> &replies() { return replies_; }

private:
    /// A large transfer that UCX is receiving.
    struct am_long_receive {
        am_receiver *owner;
        am_long_header header;
        std::uint64_t nbytes;
    };

    am_receiver(worker &receiver, arrivals &arrived, peer_lookup find_peer)
        : receiver_(receiver), arrived_(arrived), find_peer_(std::move(find_peer)) {}

    static ucs_status_t on_packet(void *self, const void *header, std::size_t header_length,
                                  void *data, std::size_t nbytes, const ucp_am_recv_param_t *info);
    static ucs_status_t on_am_long(void *self, const void *header, std::size_t header_length,
                                   void *data, std::size_t nbytes, const ucp_am_recv_param_t *info);
    static void on_am_long_received(void *request, ucs_status_t code, std::size_t nbytes,
                                    void *user_data);

    void note_alive(world_rank source);
    void read_packet(const std::byte *bytes, std::size_t nbytes);
    void read_record(const packet_header &from, const record &head, const std::byte *payload);
    void finish_get(world_rank source, std::uint64_t id, const std::byte *bytes,
                    std::size_t nbytes);
    void finish_am_long(const am_long_header &header, std::size_t nbytes, int code);
    void count_completed(world_rank source, std::uint16_t endpoint, std::uint32_t epoch,
                         std::uint64_t count);
    void acknowledge(world_rank source, std::uint16_t endpoint, std::uint32_t epoch);
    epoch_counter &counter(world_rank source, std::uint16_t endpoint) {
        return find_sender(source, endpoint).puts;
    }
    /// False: the message is not from that endpoint of a rank of this job. Reported at a limited
    /// rate; the message must be dropped.
    [[nodiscard]] bool is_genuine(std::int32_t source, std::uint16_t endpoint, std::uint64_t proof);
    sender &find_sender(world_rank source, std::uint16_t endpoint);
    void report_refused();

    worker &receiver_;
    arrivals &arrived_;
    peer_lookup find_peer_;
    std::vector<reply> replies_;
    std::unordered_map<std::uint64_t, sender> senders_; ///< by source and endpoint
    std::uint64_t last_key_ = ~std::uint64_t{0};
    sender *last_sender_ = nullptr;
    rate_limiter refusals_{4, std::chrono::minutes(1)};
};

} // namespace diomp::transport::ucx
