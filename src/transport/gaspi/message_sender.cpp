// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/gaspi/message_sender.h"

#include <algorithm>

namespace diomp::transport::gaspi {
namespace {

using outcome = queue_pool::outcome;

/// Chunks of one put_with_message.
constexpr std::size_t max_chunks_at_once = 16;

} // namespace

void message_sender::read_credit(peer &to) const {
    auto const id = static_cast<std::uint32_t>(num_ranks_ + to.rank().index());
    if (std::uint32_t const notification = take_notification(id); notification != 0) {
        to.outgoing.acknowledge(to_position(notification));
        to.note_activity();
    }
}

bool message_sender::has_space_for(peer &to, std::size_t payload_bytes) const {
    if (to.outgoing.is_half_full_with(payload_bytes)) {
        read_credit(to);
    }
    return to.outgoing.has_space_for(payload_bytes);
}

/// Writes the mirror's new records to the receiver's ring. Records that cannot go now are sent with
/// later ones in a single write: many small writes are many times slower. True: nothing is left.
bool message_sender::transmit(peer &to, std::size_t max_outstanding) {
    send_ring::unsent const now = to.outgoing.next_unsent();
    gaspi_queue *const queue = now.nbytes == 0 ? nullptr : queues_.find(to, queue_kind::message);
    if (queue == nullptr || queue->outstanding.size() > max_outstanding) {
        return now.nbytes == 0;
    }
    location const from = memory_.location_of(to.outgoing.at(now));
    std::uint64_t const there = memory_.work().remote_ring() + now.offset;
    outcome const tried = queues_.check(
        to, polls_rings(num_ranks_)
                ? queue->write(to.rank(), from, segment::work, there,
                               {operation::what::nothing, now.nbytes})
                : queue->write_and_notify(to.rank(), from, segment::work, there, now.nbytes,
                                          static_cast<std::uint32_t>(self_.index()),
                                          to_notification(now.end)));
    if (tried != outcome::started) {
        return false;
    }
    to.outgoing.note_transmitted(now);
    return to.outgoing.is_all_transmitted();
}

void message_sender::list_untransmitted(peer &to) {
    if (!to.is_untransmitted) {
        to.is_untransmitted = true;
        untransmitted_.push_back(&to);
    }
}

bool message_sender::send(peer &to, handler_id handler, std::span<const std::byte> payload,
                          bool is_reply) {
    if (!has_space_for(to, payload.size())) {
        return false;
    }
    to.outgoing.append(handler, payload);
    if (is_reply || !transmit(to)) {
        list_untransmitted(to);
    }
    return true;
}

bool message_sender::supports_data(std::span<const std::byte> source) const {
    return source.size() >= large_bytes && source.size() <= max_chunks_at_once * chunk_bytes &&
           memory_.reaches(source.data(), source.size());
}

bool message_sender::put_with_message(peer &to, std::uint64_t offset,
                                      std::span<const std::byte> source, handler_id handler,
                                      std::span<const std::byte> payload, completion &source_free) {
    gaspi_queue *const queue = queues_.find_for_data(to);
    if (queue == nullptr || to.puts.is_full_of_small_puts() || !has_space_for(to, payload.size())) {
        return false;
    }
    for (std::size_t at = 0; at < source.size(); at += chunk_bytes) {
        auto const length = static_cast<std::uint32_t>(std::min(chunk_bytes, source.size() - at));
        outcome const tried = queues_.check(
            to, queue->write(to.rank(), memory_.location_of(source.data() + at), segment::arena,
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
    to.outgoing.append(handler, payload);
    if (!transmit(to, max_queued_writes + max_chunks_at_once)) {
        list_untransmitted(to);
    }
    return true;
}

void message_sender::send_credit(peer &from, std::uint32_t position) {
    if (!from.credit_due && !from.is_failed()) {
        credits_due_.push_back(&from);
    }
    from.credit_due = position;
    send_credits();
}

bool message_sender::send_credits() {
    auto const id = static_cast<std::uint32_t>(num_ranks_ + self_.index());
    return std::erase_if(credits_due_, [&](peer *each) {
               gaspi_queue *const queue = queues_.find(*each, queue_kind::message);
               bool const is_sent =
                   queue != nullptr &&
                   queues_.check(*each, queue->notify(each->rank(), segment::work, id,
                                                      to_notification(*each->credit_due))) ==
                       outcome::started;
               if (is_sent) {
                   each->credit_due.reset();
               }
               return is_sent;
           }) > 0;
}

bool message_sender::advance() {
    bool const moved = std::erase_if(untransmitted_, [&](peer *each) {
                           each->is_untransmitted = !transmit(*each);
                           return !each->is_untransmitted;
                       }) > 0;
    return send_credits() || moved;
}

void message_sender::fail(peer &lost) {
    std::erase(credits_due_, &lost);
    std::erase(untransmitted_, &lost);
}

} // namespace diomp::transport::gaspi
