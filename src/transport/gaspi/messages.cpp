// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Messages: records in a ring at the receiver, written from its mirror at the sender. Declared in
// iface.h.
//
// In small jobs the receiver polls all rings. In jobs of many ranks that would take too long: each
// write is followed by a notification of the position where the sender's messages end. The receiver
// returns credits by notifications of the position up to which it has handled messages. A record is
// contiguous; a filler record skips the remainder at the end of the ring.
#include "transport/gaspi/iface.h"

#include <GASPI.h>
#include <algorithm>
#include <cstring>

namespace diomp::transport::gaspi {
namespace {

constexpr std::size_t message_bytes_limit = 8192;
/// Chunks of one put_with_message.
constexpr std::size_t max_chunks_at_once = 16;

constexpr auto work_id = static_cast<gaspi_segment_id_t>(segment::work);

/// Takes the notification's value since the last call; 0: none.
std::uint32_t take_notification(std::uint32_t id) {
    gaspi_notification_t value = 0;
    gaspi_notify_reset(work_id, id, &value);
    return value;
}

} // namespace

std::size_t iface::max_message_bytes() const {
    return std::min(message_bytes_limit, memory_->ring_bytes() / 4) - sizeof(record);
}

void iface::read_credit(peer &to) const {
    auto const id = static_cast<std::uint32_t>(peers_.size() + to.rank().index());
    if (std::uint32_t const notification = take_notification(id); notification != 0) {
        to.handled.store(to_position(notification), std::memory_order_relaxed);
        to.note_activity();
    }
}

bool iface::make_space(peer &to, std::size_t wanted) {
    auto const outstanding = [&] { return distance(to.handled, to.sent) + wanted; };
    if (outstanding() > num_units() / 2) {
        read_credit(to);
    }
    return outstanding() <= num_units();
}

/// Writes the mirror's new records to the receiver's ring. Records that cannot go now are sent with
/// later ones in a single write: many small writes are many times slower. True: nothing is left.
bool iface::transmit(peer &to, std::size_t max_outstanding) {
    std::uint32_t const begin = to.transmitted;
    std::uint32_t const units = distance(begin, to.sent);
    gaspi_queue *const queue = units == 0 ? nullptr : queue_for(to, queue_kind::message);
    if (queue == nullptr || queue->outstanding.size() > max_outstanding) {
        return units == 0;
    }
    std::uint32_t const at = begin % num_units();
    std::uint32_t const now = std::min(units, num_units() - at);
    std::uint32_t const end = (begin + now) & position_mask;
    std::size_t const offset = at * message_unit;
    location const from = memory_->location_of(memory_->outgoing_ring(to.rank()) + offset);
    std::uint64_t const there = memory_->remote_ring() + offset;
    std::uint32_t const nbytes = now * message_unit;
    outcome const tried = check_outcome(
        to, polls_rings() ? queue->write(to.rank(), from, segment::work, there,
                                         {operation::what::nothing, nbytes})
                          : queue->write_and_notify(to.rank(), from, segment::work, there, nbytes,
                                                    static_cast<std::uint32_t>(self_.index()),
                                                    to_notification(end)));
    if (tried != outcome::started) {
        return false;
    }
    to.transmitted = end;
    return to.transmitted == to.sent;
}

bool iface::transmit_pending() {
    return std::erase_if(untransmitted_, [&](peer *each) {
               each->is_untransmitted = !transmit(*each);
               return !each->is_untransmitted;
           }) > 0;
}

void iface::append_record(peer &to, record head, std::span<const std::byte> payload) {
    head.stamp = to_notification(to.sent);
    write_record(memory_->outgoing_ring(to.rank()) + to.sent % num_units() * message_unit, head,
                 payload);
    std::uint32_t const left = num_units() - to.sent % num_units();
    std::uint32_t const units = head.is_filler != 0 ? left : units_for(head.nbytes);
    to.sent.store((to.sent + units) & position_mask, std::memory_order_relaxed);
}

bool iface::has_space_for(peer &to, std::size_t payload_bytes) {
    std::uint32_t const units = units_for(payload_bytes);
    std::uint32_t const left = num_units() - to.sent % num_units();
    return make_space(to, left < units ? left + units : units);
}

void iface::append_message(peer &to, handler_id handler, std::span<const std::byte> payload) {
    if (num_units() - to.sent % num_units() < units_for(payload.size())) {
        append_record(to, {.is_filler = 1}, {});
    }
    append_record(to, {.nbytes = static_cast<std::uint32_t>(payload.size()), .handler = handler},
                  payload);
}

void iface::list_untransmitted(peer &to) {
    if (!to.is_untransmitted) {
        to.is_untransmitted = true;
        untransmitted_.push_back(&to);
    }
}

bool iface::try_send(world_rank rank, handler_id handler, std::span<const std::byte> payload) {
    peer &to = peer_of(rank);
    std::lock_guard const guard(mutex_);
    if (to.is_failed()) {
        return true; // dropped; waits for a reply of this peer fail
    }
    if (!has_space_for(to, payload.size())) {
        return false;
    }
    append_message(to, handler, payload);
    // A handler's reply waits for the next message to that peer or the next call of advance(),
    // whichever is first: the rank that waited for the message often sends more, and one write
    // costs half of two.
    bool const is_reply = receiver_.load(std::memory_order_relaxed) == std::this_thread::get_id();
    if (is_reply || !transmit(to)) {
        list_untransmitted(to);
    }
    return true;
}

/// At least one queue stays free for messages to other peers, which must not wait for this data.
gaspi_queue *iface::message_queue_for_data(peer &to) {
    gaspi_queue *const own = queue_for(to, queue_kind::message);
    bool const others_have_one = std::ranges::any_of(queues_, [&](const gaspi_queue &each) {
        return each.kind == queue_kind::message && &each != own && each.is_idle() && !each.is_lost;
    });
    return others_have_one ? own : nullptr;
}

/// Uses a message queue, in which GPI-2 keeps the order of the data and the message after it.
result<bool> iface::put_with_message(world_rank rank, std::uint64_t remote,
                                     std::span<const std::byte> source, handler_id handler,
                                     std::span<const std::byte> payload, completion &source_free) {
    if (source.size() < large_bytes || source.size() > max_chunks_at_once * chunk_bytes ||
        !memory_->reaches(source.data(), source.size())) {
        return false;
    }
    peer &to = peer_of(rank);
    std::lock_guard const guard(mutex_);
    if (to.is_failed()) {
        return to.lost_error().take_failure();
    }
    gaspi_queue *const queue = message_queue_for_data(to);
    if (queue == nullptr || to.unflushed_small_bytes > window_bytes ||
        !has_space_for(to, payload.size())) {
        return false;
    }
    std::uint64_t const offset = memory_->offset_in_slot(rank, remote);
    for (std::size_t at = 0; at < source.size(); at += chunk_bytes) {
        auto const length = static_cast<std::uint32_t>(std::min(chunk_bytes, source.size() - at));
        outcome const tried = check_outcome(
            to, queue->write(rank, memory_->location_of(source.data() + at), segment::arena,
                             offset + at, {operation::what::put, length, &source_free}));
        if (tried != outcome::started && at == 0) {
            return false;
        }
        if (tried != outcome::started) {
            return true; // the peer is lost, which ends the chunks before this one
        }
        source_free.begin();
        ++to.num_transfers;
    }
    append_message(to, handler, payload);
    if (!transmit(to, max_queued_writes + max_chunks_at_once)) {
        list_untransmitted(to);
    }
    return true;
}

bool iface::find_record(const peer &from, record &head) const {
    return read_record(next_record_of(from), from.received, bytes_left_at(from.received), head);
}

bool iface::has_messages() const {
    if (polls_rings()) {
        record head{};
        return std::ranges::any_of(peers_, [&](auto &each) { return find_record(*each, head); });
    }
    gaspi_notification_id_t first = 0;
    return gaspi_notify_waitsome(work_id, 0, static_cast<gaspi_number_t>(peers_.size()), &first,
                                 GASPI_TEST) == GASPI_SUCCESS;
}

/// The next sender in round-robin order, so that a busy sender does not starve others.
peer *iface::next_sender() {
    auto const size = static_cast<std::uint32_t>(peers_.size());
    gaspi_notification_id_t first = next_sender_;
    if (polls_rings()) { // each sender in turn, with or without messages
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

int iface::receive(message_handler sink) {
    if (receiving_.test_and_set(std::memory_order_acquire)) {
        return 0;
    }
    receiver_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    int num_handled = 0;
    // At most one round over the senders, then the caller goes on with its own work.
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

std::byte *iface::next_record_of(const peer &from) const {
    return memory_->incoming_ring(from.rank()) + from.received % num_units() * message_unit;
}

int iface::receive_from(peer &from, message_handler sink) {
    int num_handled = 0;
    std::uint32_t const begin = from.received;
    record head{};
    // At most one ring's length per call, and at least as far as the notification announced.
    while (distance(begin, from.received) < num_units() && find_record(from, head)) {
        std::uint32_t units = num_units() - from.received % num_units();
        if (head.is_filler == 0) {
            units = units_for(head.nbytes);
            sink({from.rank(),
                  head.handler,
                  {next_record_of(from) + sizeof(head), head.nbytes},
                  {}});
            ++num_handled;
        }
        from.received.store((from.received + units) & position_mask, std::memory_order_relaxed);
        if (distance(from.credited, from.received) >= num_units() / 4) {
            queue_credit(from);
        }
    }
    if (from.received != begin) {
        from.note_activity();
    }
    return num_handled;
}

void iface::queue_credit(peer &from) {
    from.credited = from.received;
    std::lock_guard const guard(mutex_);
    from.to_credit = from.received;
    if (!from.is_credit_due && !from.is_failed()) {
        from.is_credit_due = true;
        credits_due_.push_back(&from);
    }
    send_credits();
}

bool iface::send_credits() {
    auto const id = static_cast<std::uint32_t>(peers_.size() + self_.index());
    return std::erase_if(credits_due_, [&](peer *each) {
               gaspi_queue *const queue = queue_for(*each, queue_kind::message);
               bool const sent_now =
                   queue != nullptr &&
                   check_outcome(*each, queue->notify(each->rank(), segment::work, id,
                                                      to_notification(each->to_credit))) ==
                       outcome::started;
               each->is_credit_due = !sent_now;
               return sent_now;
           }) > 0;
}

} // namespace diomp::transport::gaspi
