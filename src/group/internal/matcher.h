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

#include "group/internal/match_queue_table.h"
#include "group/internal/rndv_buffers.h"
#include "messaging/engine.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace diomp::group {

/// One per rank. Thread-safe.
class matcher {
public:
    static constexpr std::size_t eager_bytes = std::size_t{16} << 10;
    static constexpr std::size_t max_head_bytes = 64;

    /// Create before engine.start().
    matcher(messaging::engine &engine, workspace &space, std::byte *own_slot);
    matcher(const matcher &) = delete;
    matcher &operator=(const matcher &) = delete;

    [[nodiscard]] match_queue_table &queues() { return queues_; }

    /// Sends `head`, then `body`, in fragments; both may be reused on return. Above eager_bytes, a
    /// message without a head requires the receiver's RTR. A message above eager_bytes blocks while
    /// the send queue is full; smaller ones do not block.
    void send(std::uint64_t group_id, world_rank to, message_tag tag,
              std::span<const std::byte> head, std::span<const std::byte> body);
    [[nodiscard]] static bool is_eager(std::size_t nbytes) { return nbytes <= eager_bytes; }
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
    void cancel(match_queue &own, const recv_request &request);
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

    messaging::engine &engine_;
    workspace &space_;
    rndv_buffers rndv_buffers_;
    match_queue_table queues_;
    transport::handler_id fragment_handler_;
    transport::handler_id rtr_handler_;
    transport::handler_id am_long_handler_;
    transport::handler_id fin_handler_;
    transport::handler_id report_request_handler_;
    transport::handler_id report_handler_;
};

} // namespace diomp::group
