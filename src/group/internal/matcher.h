// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tagged messages between members of a group on different nodes, matched by group, call and step.
//
// Terms. tagged message: one message, sent by the conduit in fragments. match queue: the unmatched
// messages and posted receives of one group. recv_request: a posted receive. Messages of up to
// eager_bytes are sent at once and are kept as unexpected until a receive is posted. Larger ones
// use the rendezvous protocol: the receiver sends RTR (ready to receive) with an address, the
// sender puts the data there and sends FIN. rndv_buffer: memory in the own slot for receives whose
// buffer lies outside of it. call history: this rank's view of its last calls on a group, for the
// reports that ranks with a long wait request.
#pragma once

#include "group/internal/call_state.h"
#include "group/internal/local_group.h"
#include "messaging/engine.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace diomp::group {

/// Number of a call on a group, and a step within it.
struct message_tag {
    std::uint64_t call = 0;
    std::uint64_t step = 0;
    friend auto operator<=>(const message_tag &, const message_tag &) = default;
};

/// Steps of a call. Messages with a step below step_payloads begin with a call_state.
enum message_step : std::uint64_t {
    step_state = 0, ///< + number of the exchange round
    step_payloads = 1024,
    step_list = 2048, ///< member list of a group (merge)
    step_data = 4096, ///< and above
};

/// A posted receive. The first bytes of the message go to `head`, the rest to `body`; excess bytes
/// are dropped.
struct recv_request {
    world_rank from;
    message_tag tag;
    std::span<std::byte> head;
    std::span<std::byte> body;
    std::size_t total_bytes = 0; ///< of the message; set before done
    /// Offset of the rndv buffer in the own slot, plus one; 0: data goes directly to `body`.
    std::uint64_t rndv_buffer = 0;
    std::atomic<bool> done{false};
};

/// A member's report about a call that it has made.
struct call_report {
    call_state state;
    std::int32_t awaited = -1; ///< world rank that it waits for in the call; -1: none
    std::int32_t unused = 0;
};

/// The messages of one group. Thread-safe.
class match_queue {
public:
    /// Starts a call with its number and this rank's state. Messages of earlier calls are dropped.
    void begin_call(std::uint64_t call, const call_state &own);
    /// Updates the call history entry of the current call.
    void update(const call_state &state, std::int32_t awaited);
    /// The newest report about the current call that has not been taken yet.
    std::optional<call_report> take_report();
    /// Own and received state of an earlier call whose message did not match this rank's call.
    std::optional<std::pair<call_state, call_state>> take_late_mismatch();

private:
    friend class matcher;
    static constexpr std::size_t history_length = 64;

    struct tagged_message {
        recv_request *posted_recv = nullptr;
        std::vector<std::byte> unexpected_data; ///< received before the receive was posted
        bool started = false;                   ///< a fragment has arrived
        std::size_t total_bytes = 0;
        std::size_t arrived_bytes = 0;
        bool is_zero_copy = false; ///< the conduit writes into the posted buffer
        [[nodiscard]] bool is_complete() const { return started && arrived_bytes == total_bytes; }
    };
    struct history_entry {
        std::uint64_t call = 0;
        call_report report;
    };
    using match_key = std::pair<message_tag, world_rank>;

    void check_late_message(const message_tag &tag, std::span<const std::byte> head);

    std::mutex mutex_; ///< leaf lock; protects all members
    std::uint64_t call_ = 0;
    std::map<match_key, tagged_message> messages_;
    /// RTRs received: the message, and the address that it can be put to, or 0.
    std::vector<std::pair<match_key, std::uint64_t>> rtrs_;
    std::array<history_entry, history_length> history_;
    std::optional<call_report> report_;
    std::atomic<bool> has_report_{false};
    std::optional<std::pair<call_state, call_state>> late_mismatch_;
    std::atomic<bool> has_late_mismatch_{false};
};

/// One per rank. Thread-safe.
class matcher {
public:
    static constexpr std::size_t eager_bytes = std::size_t{16} << 10;
    /// Largest unexpected message that is kept; larger ones are dropped, since only a cancelled
    /// receive leaves them unexpected. More than eager_bytes, because messages with a head need no
    /// RTR; only few of these are in flight.
    static constexpr std::size_t max_unexpected_bytes = std::size_t{72} << 10;
    static constexpr std::size_t max_head_bytes = 64;

    /// Size and maximum number of the rndv buffers.
    static constexpr std::size_t rndv_buffer_bytes = std::size_t{256} << 10;
    static constexpr std::size_t max_rndv_buffers = 32;

    /// Create before engine.start().
    matcher(messaging::engine &engine, workspace &space, std::byte *own_slot);
    ~matcher();
    matcher(const matcher &) = delete;
    matcher &operator=(const matcher &) = delete;

    /// Messages may have arrived before. The id is equal on all members and never used again.
    match_queue &open(std::uint64_t group_id);
    void close(std::uint64_t group_id);

    /// Sends `head`, then `body`, in fragments; both may be reused on return. Above eager_bytes, a
    /// message without a head requires the receiver's RTR. A message above eager_bytes blocks while
    /// the send queue is full; smaller ones do not block.
    void send(std::uint64_t group_id, world_rank to, message_tag tag,
              std::span<const std::byte> head, std::span<const std::byte> body);
    [[nodiscard]] static bool is_eager(std::size_t nbytes) { return nbytes <= eager_bytes; }
    /// Takes the RTR of a large message: the address to put it to; 0: send it in fragments.
    /// nullopt: not received yet. Once per message.
    std::optional<std::uint64_t> take_rtr(match_queue &own, world_rank of, message_tag tag);
    /// Starts to send the message as one long active message; `body` may be reused after `done`.
    /// false if the conduit cannot: use send, or put and send_fin.
    result<bool> send_am_long(std::uint64_t group_id, world_rank to, message_tag tag,
                              std::span<const std::byte> head, std::span<const std::byte> body,
                              transport::completion &done);
    /// Notifies the receiver that a put of a large message is complete and visible.
    void send_fin(std::uint64_t group_id, world_rank to, message_tag tag);

    /// Posts a receive. The size of a large message must equal the sent size; its sender gets an
    /// RTR if `sends_rtr`. The request must live until complete_recv or cancel.
    void post_recv(std::uint64_t group_id, match_queue &own, recv_request &request,
                   bool sends_rtr = true);
    /// Call after done: moves the data into `body` if it is in a rndv buffer.
    void complete_recv(recv_request &request);
    /// Removes a posted receive; the request may be destroyed afterwards. Its rndv buffer is never
    /// reused, since the sender may still put into it.
    void cancel(match_queue &own, recv_request &request);
    /// Frees the request's rndv buffer. The sender must not put into it any more.
    void return_rndv_buffer(recv_request &request);

    /// Requests a member's report about a call. A reply, if any, arrives in the match queue.
    void request_report(std::uint64_t group_id, world_rank rank, std::uint64_t call);

private:
    struct fragment_header {
        std::uint64_t group_id;
        message_tag tag;
        std::uint64_t total_bytes;
        std::uint64_t offset;
    };
    struct control_message {
        std::uint64_t group_id;
        message_tag tag;
        std::uint64_t address;
    };
    struct report_message {
        std::uint64_t group_id;
        std::uint64_t call;
        call_report report;
    };

    void on_fragment(const transport::message &incoming);
    void on_rtr(const transport::message &incoming);
    void on_am_long(const transport::message &incoming);
    std::byte *recv_buffer_for(const transport::message &header, std::size_t nbytes);
    void on_fin(const transport::message &incoming);
    void on_report_request(const transport::message &incoming);
    void on_report(const transport::message &incoming);
    match_queue *find(std::uint64_t group_id);
    /// The match queue and its lock; null if the group was closed, so that the message is dropped.
    struct locked_queue {
        match_queue *found = nullptr;
        std::unique_lock<std::mutex> lock;
    };
    locked_queue lock_queue(std::uint64_t group_id);
    std::uint64_t take_rndv_buffer(); ///< offset plus one; 0: no buffer is free

    messaging::engine &engine_;
    workspace &space_;
    std::byte *own_slot_;
    transport::handler_id fragment_handler_;
    transport::handler_id rtr_handler_;
    transport::handler_id am_long_handler_;
    transport::handler_id fin_handler_;
    transport::handler_id report_request_handler_;
    transport::handler_id report_handler_;
    std::mutex mutex_; ///< protects the table; taken before a match queue's lock, never after it
    std::unordered_map<std::uint64_t, std::unique_ptr<match_queue>> queues_;
    static constexpr std::size_t num_remembered_ids = 256;
    std::array<std::uint64_t, num_remembered_ids>
        closed_{}; ///< ids plus one of the last closed groups
    std::size_t num_closed_ = 0;
    std::mutex rndv_mutex_; ///< leaf lock
    std::vector<std::uint64_t> free_rndv_buffers_;
    std::size_t num_rndv_buffers_ = 0;
};

} // namespace diomp::group
