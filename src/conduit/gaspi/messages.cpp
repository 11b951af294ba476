// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Messages: records in a ring at the receiver, written from its mirror at the sender. Declared in
// traffic.h.
//
// The receiver finds a record by looking for it. In a job of many ranks that would take too long:
// there a notification behind it tells where the messages of this sender end now. The receiver
// tells by notification how far it has handled them. A record lies in one piece; what is left at
// the ring's end is skipped by a record without a message.
#include "conduit/gaspi/traffic.h"

#include <GASPI.h>
#include <algorithm>
#include <cstring>

namespace diomp::conduit::gaspi {
namespace {

constexpr std::size_t most_message_bytes = 8192;
/// Of data with a message behind it.
constexpr std::size_t most_pieces_at_once = 16;

constexpr auto work_id = static_cast<gaspi_segment_id_t>(segment::work);

/// What a notification has told since it was last asked; 0: nothing.
std::uint32_t take_notification(std::uint32_t id) {
    gaspi_notification_t value = 0;
    gaspi_notify_reset(work_id, id, &value);
    return value;
}

} // namespace

std::size_t traffic::max_message_bytes() const {
    return std::min(most_message_bytes, memory_->ring_bytes() / 4) - sizeof(record);
}

void traffic::learn_credit(peer &to) const {
    auto const id = static_cast<std::uint32_t>(peers_.size() + to.rank().index());
    if (std::uint32_t const told = take_notification(id); told != 0) {
        to.handled.store(to_position(told), std::memory_order_relaxed);
        to.note_sign_of_life();
    }
}

bool traffic::make_room(peer &to, std::size_t wanted) {
    auto const under_way = [&] { return distance(to.handled, to.sent) + wanted; };
    if (under_way() > num_units() / 2) {
        learn_credit(to);
    }
    return under_way() <= num_units();
}

/// Sends what has been put into the mirror. What does not go now goes with later messages, in one
/// piece, when those before it are on their way: many small writes are many times slower.
bool traffic::ship(peer &to, std::size_t most_under_way) {
    std::uint32_t const begin = to.shipped;
    std::uint32_t const units = distance(begin, to.sent);
    lane *const on = units == 0 ? nullptr : lane_of(to, lane_kind::message);
    if (on == nullptr || on->under_way.size() > most_under_way) {
        return units == 0;
    }
    std::uint32_t const at = begin % num_units();
    std::uint32_t const now = std::min(units, num_units() - at);
    std::uint32_t const end = (begin + now) & position_mask;
    std::size_t const offset = at * message_unit;
    place const from = memory_->place_of(memory_->outgoing_ring(to.rank()) + offset);
    std::uint64_t const there = memory_->remote_ring() + offset;
    std::uint32_t const nbytes = now * message_unit;
    outcome const tried =
        note(to, looks_for_messages()
                     ? on->write(to.rank(), from, segment::work, there,
                                 {operation::what::nothing, nbytes})
                     : on->write_and_notify(to.rank(), from, segment::work, there, nbytes,
                                            static_cast<std::uint32_t>(self_.index()),
                                            to_notification(end)));
    if (tried != outcome::started) {
        return false;
    }
    to.shipped = end;
    return to.shipped == to.sent;
}

bool traffic::ship_waiting() {
    return std::erase_if(unshipped_, [&](peer *each) {
               each->is_unshipped = !ship(*each);
               return !each->is_unshipped;
           }) > 0;
}

void traffic::append_record(peer &to, record head, std::span<const std::byte> payload) {
    head.stamp = to_notification(to.sent);
    write_record(memory_->outgoing_ring(to.rank()) + to.sent % num_units() * message_unit, head,
                 payload);
    std::uint32_t const left = num_units() - to.sent % num_units();
    std::uint32_t const units = head.is_filler != 0 ? left : units_for(head.nbytes);
    to.sent.store((to.sent + units) & position_mask, std::memory_order_relaxed);
}

bool traffic::has_room_for(peer &to, std::size_t payload_bytes) {
    std::uint32_t const units = units_for(payload_bytes);
    std::uint32_t const left = num_units() - to.sent % num_units();
    return make_room(to, left < units ? left + units : units);
}

void traffic::append_message(peer &to, handler_id handler, std::span<const std::byte> payload) {
    if (num_units() - to.sent % num_units() < units_for(payload.size())) {
        append_record(to, {.is_filler = 1}, {});
    }
    append_record(to, {.nbytes = static_cast<std::uint32_t>(payload.size()), .handler = handler},
                  payload);
}

void traffic::list_unshipped(peer &to) {
    if (!to.is_unshipped) {
        to.is_unshipped = true;
        unshipped_.push_back(&to);
    }
}

bool traffic::try_send(world_rank rank, handler_id handler, std::span<const std::byte> payload) {
    peer &to = peer_of(rank);
    std::lock_guard const guard(mutex_);
    if (to.is_failed()) {
        return true; // nobody is there to miss it; whoever waits for an answer is told
    }
    if (!has_room_for(to, payload.size())) {
        return false;
    }
    append_message(to, handler, payload);
    // An answer of a handler waits for the next message there or the next look, whichever comes
    // first: who has been waiting for the message often answers it, and one write is half of two.
    bool const is_answer = receiver_.load(std::memory_order_relaxed) == std::this_thread::get_id();
    if (is_answer || !ship(to)) {
        list_unshipped(to);
    }
    return true;
}

/// One lane at least stays free for messages to others, which are not to wait for this data.
lane *traffic::message_lane_for_data(peer &to) {
    lane *const own = lane_of(to, lane_kind::message);
    bool const others_have_one = std::ranges::any_of(lanes_, [&](const lane &each) {
        return each.kind == lane_kind::message && &each != own && each.is_idle() && !each.is_lost;
    });
    return others_have_one ? own : nullptr;
}

/// On a lane for messages: there GPI-2 keeps the order of the data and what is written behind it.
result<bool> traffic::put_with_message(world_rank rank, std::uint64_t remote,
                                       std::span<const std::byte> source, handler_id handler,
                                       std::span<const std::byte> payload,
                                       completion &source_free) {
    if (source.size() < large_bytes || source.size() > most_pieces_at_once * piece_bytes ||
        !memory_->reaches(source.data(), source.size())) {
        return false;
    }
    peer &to = peer_of(rank);
    std::lock_guard const guard(mutex_);
    if (to.is_failed()) {
        return to.gone().take_failure();
    }
    lane *const on = message_lane_for_data(to);
    if (on == nullptr || to.unsettled_small_bytes > window_bytes ||
        !has_room_for(to, payload.size())) {
        return false;
    }
    std::uint64_t const offset = memory_->offset_in_slot(rank, remote);
    for (std::size_t at = 0; at < source.size(); at += piece_bytes) {
        auto const length = static_cast<std::uint32_t>(std::min(piece_bytes, source.size() - at));
        outcome const tried =
            note(to, on->write(rank, memory_->place_of(source.data() + at), segment::window,
                               offset + at, {operation::what::put, length, &source_free}));
        if (tried != outcome::started && at == 0) {
            return false;
        }
        if (tried != outcome::started) {
            return true; // the peer is lost, by which the pieces before this one end
        }
        source_free.begin();
        ++to.num_transfers;
    }
    append_message(to, handler, payload);
    if (!ship(to, few_writes + most_pieces_at_once)) {
        list_unshipped(to);
    }
    return true;
}

bool traffic::find_record(const peer &from, record &head) const {
    return read_record(next_record_of(from), from.taken, bytes_left_at(from.taken), head);
}

bool traffic::has_messages() const {
    if (looks_for_messages()) {
        record head{};
        return std::ranges::any_of(peers_, [&](auto &each) { return find_record(*each, head); });
    }
    gaspi_notification_id_t first = 0;
    return gaspi_notify_waitsome(work_id, 0, static_cast<gaspi_number_t>(peers_.size()), &first,
                                 GASPI_TEST) == GASPI_SUCCESS;
}

/// Whose turn it is, so that none waits for ever behind a busy one.
peer *traffic::next_sender() {
    auto const size = static_cast<std::uint32_t>(peers_.size());
    gaspi_notification_id_t first = next_sender_;
    if (looks_for_messages()) { // at each in turn; it may have sent nothing
        next_sender_ = (first + 1) % size;
        return peers_[first].get();
    }
    bool const found = gaspi_notify_waitsome(work_id, next_sender_, size - next_sender_, &first,
                                             GASPI_TEST) == GASPI_SUCCESS ||
                       (next_sender_ > 0 && gaspi_notify_waitsome(work_id, 0, next_sender_, &first,
                                                                  GASPI_TEST) == GASPI_SUCCESS);
    if (!found) {
        return nullptr;
    }
    take_notification(first);
    next_sender_ = (first + 1) % size;
    return peers_[first].get();
}

int traffic::receive(message_sink sink) {
    if (receiving_.test_and_set(std::memory_order_acquire)) {
        return 0;
    }
    receiver_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    int num_handled = 0;
    // At most once around: somebody else waits for what this thread does next.
    for (std::size_t i = 0; i < peers_.size(); ++i) {
        peer *const from = next_sender();
        if (from == nullptr) {
            break;
        }
        num_handled += receive_from(*from, sink);
    }
    receiver_.store({}, std::memory_order_relaxed);
    receiving_.clear(std::memory_order_release);
    return num_handled;
}

std::byte *traffic::next_record_of(const peer &from) const {
    return memory_->incoming_ring(from.rank()) + from.taken % num_units() * message_unit;
}

int traffic::receive_from(peer &from, message_sink sink) {
    int num_handled = 0;
    std::uint32_t const begin = from.taken;
    record head{};
    // Not for ever, if more keeps coming; at least as far as a notification has told.
    while (distance(begin, from.taken) < num_units() && find_record(from, head)) {
        std::uint32_t units = num_units() - from.taken % num_units();
        if (head.is_filler == 0) {
            units = units_for(head.nbytes);
            sink({from.rank(),
                  head.handler,
                  {next_record_of(from) + sizeof(head), head.nbytes},
                  {}});
            ++num_handled;
        }
        from.taken.store((from.taken + units) & position_mask, std::memory_order_relaxed);
        if (distance(from.credited, from.taken) >= num_units() / 4) {
            credit(from);
        }
    }
    if (from.taken != begin) {
        from.note_sign_of_life();
    }
    return num_handled;
}

void traffic::credit(peer &from) {
    from.credited = from.taken;
    std::lock_guard const guard(mutex_);
    from.to_credit = from.taken;
    if (!from.owes_credit && !from.is_failed()) {
        from.owes_credit = true;
        debtors_.push_back(&from);
    }
    pay_credits();
}

bool traffic::pay_credits() {
    auto const id = static_cast<std::uint32_t>(peers_.size() + self_.index());
    return std::erase_if(debtors_, [&](peer *each) {
               lane *const on = lane_of(*each, lane_kind::message);
               bool const paid =
                   on != nullptr &&
                   note(*each, on->notify(each->rank(), segment::work, id,
                                          to_notification(each->to_credit))) == outcome::started;
               each->owes_credit = !paid;
               return paid;
           }) > 0;
}

} // namespace diomp::conduit::gaspi
