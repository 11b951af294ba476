// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What follows from frames that arrive. Declared in traffic.h.
#include "conduit/tcp/traffic.h"

namespace diomp::conduit::tcp {
bool traffic::is_ours(std::uint64_t address, std::size_t nbytes) const {
    return address >= slot_begin_ && nbytes <= slot_bytes_ &&
           address - slot_begin_ <= slot_bytes_ - nbytes;
}

std::byte *traffic::place_body(link &on, const frame &head, std::span<const std::byte> front) {
    peer &from = *on.target();
    switch (head.what) {
    case kind::put:
        return is_ours(head.address, head.nbytes) ? reinterpret_cast<std::byte *>(head.address)
                                                  : nullptr;
    case kind::data: {
        std::byte *const place = from.destination_of(to_get_id(head.number), head.nbytes);
        return place != nullptr ? place : from.is_failed() ? on.scratch(head.nbytes) : nullptr;
    }
    case kind::message:
        return head.nbytes <= most_message_bytes ? on.scratch(head.nbytes) : nullptr;
    case kind::bulk:
        return head.nbytes <= most_bulk_bytes ? place_bulk(on, head, front) : nullptr;
    default:
        return nullptr;
    }
}

std::byte *traffic::place_bulk(link &on, const frame &head, std::span<const std::byte> front) {
    std::byte *const place =
        arrived_.place_bulk({on.target()->rank(), head.handler, front, {}}, head.nbytes);
    return place != nullptr ? place : on.scratch(head.nbytes);
}

bool traffic::take(link &on, const frame &head, std::span<const std::byte> front,
                   const std::byte *body) {
    peer &from = *on.target();
    from.note_sign_of_life();
    switch (head.what) {
    case kind::put:
        return true;
    case kind::get: {
        frame const answer{.what = kind::data, .nbytes = head.nbytes, .number = head.number};
        if (!is_ours(head.address, head.nbytes)) {
            return false;
        }
        on.send(answer, reinterpret_cast<const void *>(head.address), head.nbytes, nullptr);
        return true;
    }
    case kind::message:
        arrived_.add_message(from.rank(), head.handler, body, head.nbytes);
        return true;
    case kind::bulk:
        arrived_.take_bulk({from.rank(), head.handler, front, {body, head.nbytes}});
        return true;
    case kind::flush:
        on.send({.what = kind::flushed, .number = head.number}, nullptr, 0, nullptr);
        return true;
    case kind::ping:
        on.send({.what = kind::handled, .number = from.take_handled()}, nullptr, 0, nullptr);
        return true;
    default:
        return take_answer(on, from, head);
    }
}

bool traffic::take_answer(link &on, peer &from, const frame &head) {
    switch (head.what) {
    case kind::handled:
        from.free_room(head.number);
        return true;
    case kind::data:
        from.end_get(to_get_id(head.number));
        return true;
    case kind::flushed:
        from.end_flush(head.number);
        return true;
    case kind::welcome:
        if (from.rank() < own_rank_ && !on.release()) {
            return false;
        }
        note_joined(from);
        return true;
    default:
        return false;
    }
}

void traffic::divert_bulk(const std::byte *place) {
    for (auto const &each : links()) {
        each->divert(place);
    }
}

} // namespace diomp::conduit::tcp
