// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/tcp/frame_dispatcher.h"

#include "transport/arena.h"
#include "transport/common/message_queue.h"
#include "transport/tcp/connection.h"

namespace diomp::transport::tcp {

frame_dispatcher::frame_dispatcher(world_rank own_rank, const arena &arena, arrivals &arrived,
                                   acceptor &accepting)
    : own_rank_(own_rank), slot_begin_(reinterpret_cast<std::uint64_t>(arena.slot(own_rank))),
      slot_bytes_(arena.slot_bytes()), arrived_(arrived), acceptor_(accepting) {}

bool frame_dispatcher::is_in_segment(std::uint64_t address, std::size_t nbytes) const {
    return address >= slot_begin_ && nbytes <= slot_bytes_ &&
           address - slot_begin_ <= slot_bytes_ - nbytes;
}

std::byte *frame_dispatcher::find_body_buffer(connection &conn, const frame &head,
                                              std::span<const std::byte> front) {
    peer &from = *conn.target();
    switch (head.what) {
    case kind::put:
        return is_in_segment(head.address, head.nbytes)
                   ? reinterpret_cast<std::byte *>(head.address)
                   : nullptr;
    case kind::data: {
        std::byte *const buffer = from.destination_of(to_get_id(head.number), head.nbytes);
        return buffer != nullptr  ? buffer
               : from.is_failed() ? conn.incoming().scratch(head.nbytes)
                                  : nullptr;
    }
    case kind::message:
        return head.nbytes <= max_message_payload_bytes ? conn.incoming().scratch(head.nbytes)
                                                        : nullptr;
    case kind::am_long:
        return head.nbytes <= max_am_long_payload_bytes ? find_recv_buffer(conn, head, front)
                                                        : nullptr;
    default:
        return nullptr;
    }
}

std::byte *frame_dispatcher::find_recv_buffer(connection &conn, const frame &head,
                                              std::span<const std::byte> front) {
    std::byte *const buffer =
        arrived_.find_recv_buffer({conn.target()->rank(), head.handler, front, {}}, head.nbytes);
    return buffer != nullptr ? buffer : conn.incoming().scratch(head.nbytes);
}

bool frame_dispatcher::handle_frame(connection &conn, const frame &head,
                                    std::span<const std::byte> front, const std::byte *body) {
    peer &from = *conn.target();
    from.note_activity();
    from.note_use();
    if (conn.current_state() == connection::state::accepted) [[unlikely]] {
        static_cast<void>(conn.lifecycle().confirm()); // whatever it is, the peer uses this socket
    }
    switch (head.what) {
    case kind::put:
        return true;
    case kind::get: {
        frame const reply{.what = kind::data, .nbytes = head.nbytes, .number = head.number};
        if (!is_in_segment(head.address, head.nbytes)) {
            return false;
        }
        conn.send(reply, reinterpret_cast<const void *>(head.address), head.nbytes, nullptr);
        return true;
    }
    case kind::message:
        arrived_.add_message(from.rank(), head.handler, body, head.nbytes);
        return true;
    case kind::am_long:
        arrived_.handle_long({from.rank(), head.handler, front, {body, head.nbytes}});
        return true;
    case kind::flush:
        conn.send({.what = kind::flushed, .number = head.number}, nullptr, 0, nullptr);
        return true;
    case kind::ping:
        conn.send({.what = kind::handled, .number = from.take_handled_bytes()}, nullptr, 0,
                  nullptr);
        return true;
    default:
        return handle_reply(conn, from, head);
    }
}

bool frame_dispatcher::handle_reply(connection &conn, peer &from, const frame &head) {
    switch (head.what) {
    case kind::handled:
        from.return_credit(head.number);
        return true;
    case kind::data:
        from.end_get(to_get_id(head.number));
        return true;
    case kind::flushed:
        from.end_flush(head.number);
        return true;
    case kind::conn_ack:
        if (from.rank() < own_rank_ && !conn.lifecycle().confirm()) {
            return false;
        }
        acceptor_.note_connected(from);
        if (head.number != 0) {
            conn.send({.what = kind::conn_confirm}, nullptr, 0, nullptr);
        }
        return true;
    case kind::conn_confirm:
        return true;
    case kind::close_request:
        from.return_credit(head.number);
        return conn.lifecycle().reply_to_close(
            own_rank_ < from.rank(), acceptor_.can_reconnect() && !from.has_outstanding());
    case kind::close_ack:
        from.return_credit(head.number);
        return conn.lifecycle().end_close();
    case kind::close_nack:
        return conn.lifecycle().resume();
    default:
        return false;
    }
}

} // namespace diomp::transport::tcp
