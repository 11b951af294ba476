// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/gasnet/iface.h"

#include "base/per_thread.h"
#include "transport/common/backoff.h"
#include "transport/gasnet/handlers.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string_view>

namespace diomp::transport::gasnet {
namespace {

/// Limit of the payload of a message with long data; conduit.h guarantees it.
constexpr std::size_t max_long_payload_bytes = 128;
constexpr std::size_t message_bytes = 8192;

/// Sources up to this size are copied if a put must wait.
constexpr std::size_t max_copied_source_bytes = 8192;

/// How long a rank polls after a request: longer than the interval between requests, and longer
/// than a time slice of a busy processor.
constexpr std::int64_t requested_polling_ns = 8'000'000;

std::int64_t now_ns() {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

std::size_t max_request_bytes() { return gex_AM_LUBRequestMedium(); }

std::size_t num_chunks_of(std::size_t nbytes) {
    return (nbytes + max_request_bytes() - 1) / max_request_bytes();
}

bool is_udp() { return std::string_view(launch::gasnet::conduit_name()) == "udp"; }

/// Size of a put's next chunk. With udp the last chunks are of equal size: the peer copies one
/// while the next is in flight. Other conduits use the largest size: with ucx a chunk of half that
/// size takes as long.
std::size_t next_chunk_bytes(std::size_t left) {
    constexpr std::size_t few = 4;
    std::size_t const chunks = num_chunks_of(left);
    return chunks > few || !is_udp() ? std::min(left, max_request_bytes())
                                     : (left + chunks - 1) / chunks;
}

/// For udp, the number of unanswered requests at which the next one blocks is known.
std::uint32_t find_num_slots() {
    constexpr std::uint32_t margin = 8;
    constexpr std::uint32_t of_udp = 128;
    constexpr std::uint32_t of_others = 64;
    if (!is_udp()) {
        return of_others;
    }
    const char *const chosen = gasnet_getenv("GASNET_NETWORKDEPTH");
    auto const depth = static_cast<std::uint32_t>(chosen != nullptr ? std::atoi(chosen) : 0);
    return std::max(depth > 0 ? depth : of_udp, margin + 1) - margin;
}

} // namespace

iface::iface(const launch::gasnet::gasnet_client &job, launch::launcher &launcher,
             arrivals &arrived)
    : job_(job), launcher_(launcher),
      max_message_bytes_(std::min<std::size_t>(message_bytes, max_request_bytes())),
      num_slots_(find_num_slots()), peers_(static_cast<std::size_t>(launcher.info().size)),
      arrived_(arrived) {
    register_handlers(job.endpoint, *this);
}

iface::~iface() { unregister_handlers(); }

std::size_t iface::max_long_bytes() { return gex_AM_LUBRequestMedium() - max_long_payload_bytes; }

peer &iface::peer_of(world_rank rank) {
    return peers_.find_or_make(rank, [&] {
        auto host = launcher_.get(rank, host_key);
        auto const bound = launcher_.get(rank, bound_key);
        return std::make_unique<peer>(rank, host ? host.take() : std::string(),
                                      ranges_from(bound ? bound.value() : std::string()));
    });
}

peer &iface::note_arrival(world_rank source) {
    num_arrived_.fetch_add(1, std::memory_order_relaxed);
    peer &from = peer_of(source);
    from.note_activity();
    return from;
}

bool iface::send_put_chunk(peer &to, pending_transfer &put) {
    if (!to.take_slot(num_slots_)) {
        return false;
    }
    std::size_t const chunk = next_chunk_bytes(put.left);
    std::uint64_t const ack_id = number_of(put.ack_epoch);
    gex_AM_RequestMedium4(job_.team, to.gex_rank(), put_handler,
                          const_cast<std::byte *>(put.source), chunk, GEX_EVENT_NOW, 0,
                          high(put.address), low(put.address), high(ack_id), low(ack_id));
    put.source += chunk;
    put.address += chunk;
    put.left -= chunk;
    return true;
}

bool iface::send_get_chunk(peer &from, pending_transfer &get) {
    if (!from.take_slot(num_slots_)) {
        return false;
    }
    std::size_t const chunk = std::min<std::size_t>(get.left, gex_AM_LUBReplyMedium());
    gex_AM_RequestShort7(
        job_.team, from.gex_rank(), get_handler, 0, high(get.address), low(get.address),
        static_cast<gex_AM_Arg_t>(chunk), static_cast<gex_AM_Arg_t>(get.id.index),
        static_cast<gex_AM_Arg_t>(get.id.generation), high(get.offset), low(get.offset));
    get.address += chunk;
    get.offset += chunk;
    get.left -= chunk;
    return true;
}

void iface::put(peer &to, std::uint64_t address, const std::byte *source, std::size_t nbytes,
                completion &source_free) {
    pending_transfer whole;
    whole.address = address;
    whole.source = source;
    whole.left = nbytes;
    whole.ack_epoch = to.begin_put(num_chunks_of(nbytes), nbytes);
    while (to.waiting.is_empty() && whole.left > 0 && send_put_chunk(to, whole)) {
    }
    if (whole.left == 0) {
        return;
    }
    if (whole.left <= max_copied_source_bytes) {
        advance_until([&] { return to.waiting.has_space_for_copies() || to.is_failed(); },
                      [&] { return advance(); });
        whole.copy.assign(whole.source, whole.source + whole.left);
        whole.source = whole.copy.data();
    } else {
        source_free.begin();
        whole.source_free = &source_free;
    }

    completion *const source_in_use = whole.source_free;
    if (!to.waiting.add(to, std::move(whole)) && source_in_use != nullptr) {
        source_in_use->end(OMPX_ERR_PEER);
    }
    any_backlog_.store(true, std::memory_order_release);
}

void iface::get(peer &from, std::uint64_t address, void *destination, std::size_t nbytes,
                completion &done) {
    pending_transfer whole;
    whole.address = address;
    whole.left = nbytes;
    whole.id = from.begin_get(destination, nbytes, done);
    while (from.waiting.is_empty() && whole.left > 0 && send_get_chunk(from, whole)) {
    }
    if (whole.left > 0) {
        // If the peer has failed meanwhile, the get has ended already.
        [[maybe_unused]] bool const waits = from.waiting.add(from, std::move(whole));
        any_backlog_.store(true, std::memory_order_release);
    }
}

bool iface::try_send(peer &to, handler_id handler, std::span<const std::byte> payload) {
    if (!to.take_credit(payload.size())) {
        return false;
    }
    if (!to.take_slot(num_slots_)) {
        to.return_credit(message_cost(payload.size()));
        return false;
    }
    to.unacknowledged_messages.fetch_add(1, std::memory_order_relaxed);
    std::lock_guard const guard(to.send_mutex);
    gex_AM_RequestMedium2(job_.team, to.gex_rank(), message_request_handler,
                          const_cast<std::byte *>(payload.data()), payload.size(), GEX_EVENT_NOW, 0,
                          handler, static_cast<gex_AM_Arg_t>(to.next_to_send++));
    return true;
}

bool iface::send_long(peer &to, handler_id handler, std::span<const std::byte> payload,
                      std::span<const std::byte> data) {
    if (!to.take_slot(num_slots_)) {
        return false;
    }
    struct joined_bytes {
        std::vector<std::byte> all;
    };
    std::vector<std::byte> &joined = per_thread<joined_bytes>::get().all;
    joined.assign(payload.begin(), payload.end());
    joined.insert(joined.end(), data.begin(), data.end());
    to.unacknowledged_messages.fetch_add(1, std::memory_order_relaxed);
    gex_AM_RequestMedium2(job_.team, to.gex_rank(), long_handler, joined.data(), joined.size(),
                          GEX_EVENT_NOW, 0, handler, static_cast<gex_AM_Arg_t>(payload.size()));
    return true;
}

bool iface::wait_for_slot(peer &to) {
    bool taken = false;
    advance_until([&] { return (taken = to.take_slot(num_slots_)) || to.is_failed(); },
                  [&] { return advance(); });
    return taken;
}

void iface::give_credit(peer &to) {
    if (wait_for_slot(to)) {
        auto const handled = static_cast<gex_AM_Arg_t>(to.take_handled_bytes());
        gex_AM_RequestShort1(job_.team, to.gex_rank(), credit_handler, 0, handled);
    }
}

void iface::ping(peer &to) {
    // If no slot is free, enough requests are outstanding to show a sign of life.
    if (to.take_slot(num_slots_)) {
        gex_AM_RequestShort0(job_.team, to.gex_rank(), ping_handler, 0);
    }
}

void iface::request_polling(peer &to) {
    std::int64_t const now = now_ns();
    std::int64_t last = to.polling_requested_at_ns.load(std::memory_order_relaxed);
    if (now - last < std::chrono::nanoseconds(polling_request_interval).count() ||
        !to.polling_requested_at_ns.compare_exchange_strong(last, now, std::memory_order_relaxed)) {
        return;
    }
    // If no slot is free, outstanding requests reach the peer anyway.
    if (to.take_slot(num_slots_)) {
        gex_AM_RequestShort0(job_.team, to.gex_rank(), poll_request_handler, 0);
    }
}

void iface::keep_polling() {
    poll_until_.store(now_ns() + requested_polling_ns, std::memory_order_relaxed);
}

bool iface::is_polling_requested() {
    std::int64_t until = poll_until_.load(std::memory_order_relaxed);
    if (until == 0) {
        return false;
    }
    if (now_ns() < until) {
        return true;
    }
    poll_until_.compare_exchange_strong(until, 0, std::memory_order_relaxed);
    return false;
}

void iface::transmit_backlogs() {
    any_backlog_.store(false, std::memory_order_release);
    for (auto const &each : peers_in_use()) {
        if (!each->waiting.is_empty()) {
            each->waiting.transmit(
                [&](pending_transfer &transfer) { return send_chunk(*each, transfer); });
        }
        if (!each->waiting.is_empty()) {
            any_backlog_.store(true, std::memory_order_release);
        }
    }
}

bool iface::advance() {
    std::uint64_t const before = num_arrived_.load(std::memory_order_relaxed);
    gasnet_AMPoll();
    if (any_backlog_.load(std::memory_order_acquire)) {
        transmit_backlogs();
    }
    return num_arrived_.load(std::memory_order_relaxed) != before;
}

void iface::queue(world_rank source, handler_id handler, std::uint32_t number, const void *payload,
                  std::size_t nbytes) {
    peer &from = peer_of(source);
    arrived_.add_messages([&](message_queue &waiting) {
        from.order.deliver_in_order(number, handler, payload, nbytes,
                                    [&](handler_id to, const std::byte *bytes, std::size_t size) {
                                        waiting.add(source, to, bytes, size);
                                    });
    });
}

} // namespace diomp::transport::gasnet
