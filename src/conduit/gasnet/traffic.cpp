// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conduit/gasnet/traffic.h"

#include "base/per_thread.h"
#include "conduit/gasnet/handlers.h"
#include "conduit/network_frame.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string_view>

namespace diomp::conduit::gasnet {
namespace {

/// Payload of a message with bulk data, whatever its caller says.
constexpr std::size_t most_bulk_payload_bytes = 128;
constexpr std::size_t message_bytes = 8192;

/// Sources up to this size are copied where a put must wait.
constexpr std::size_t most_kept_aside = 8192;

/// For so long a rank looks for what others want: longer than until they ask again, and than a turn
/// of a busy processor.
constexpr std::int64_t attendance_ns = 8'000'000;

std::int64_t now_ns() {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

std::size_t most_in_request() { return gex_AM_LUBRequestMedium(); }

std::size_t num_pieces_of(std::size_t nbytes) {
    return (nbytes + most_in_request() - 1) / most_in_request();
}

bool is_udp() { return std::string_view(launch::gasnet::conduit_name()) == "udp"; }

/// Of a put that has so much left. With udp alike at the end: the peer copies one while the next is
/// on its way. Elsewhere as large as they can be: with ucx each takes as long as half of that.
std::size_t next_piece(std::size_t left) {
    constexpr std::size_t few = 4;
    std::size_t const pieces = num_pieces_of(left);
    return pieces > few || !is_udp() ? std::min(left, most_in_request())
                                     : (left + pieces - 1) / pieces;
}

/// Of udp it is known how many requests a peer may leave unanswered before the next one blocks.
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

traffic::traffic(const launch::gasnet::client &job, launch::launcher &launcher, arrivals &arrived)
    : job_(job), launcher_(launcher),
      max_message_bytes_(std::min<std::size_t>(message_bytes, most_in_request())),
      num_slots_(find_num_slots()), peers_(static_cast<std::size_t>(launcher.info().size)),
      arrived_(arrived) {
    register_handlers(job.endpoint, *this);
}

traffic::~traffic() { forget_handlers(); }

std::size_t traffic::max_bulk_bytes() {
    return gex_AM_LUBRequestMedium() - most_bulk_payload_bytes;
}

peer &traffic::peer_of(world_rank rank) {
    return peers_.find_or_make(rank, [&] {
        auto host = launcher_.get(rank, host_key);
        auto const bound = launcher_.get(rank, bound_key);
        return std::make_unique<peer>(rank, host ? host.take() : std::string(),
                                      ranges_from(bound ? bound.value() : std::string()));
    });
}

peer &traffic::heard(world_rank source) {
    num_arrived_.fetch_add(1, std::memory_order_relaxed);
    peer &from = peer_of(source);
    from.note_sign_of_life();
    return from;
}

bool traffic::send_piece_of_put(peer &to, waiting_transfer &put) {
    if (!to.take_slot(num_slots_)) {
        return false;
    }
    std::size_t const piece = next_piece(put.left);
    std::uint64_t const answer_to = number_of(put.answers_to);
    gex_AM_RequestMedium4(job_.team, to.gex_rank(), put_handler,
                          const_cast<std::byte *>(put.source), piece, GEX_EVENT_NOW, 0,
                          high(put.address), low(put.address), high(answer_to), low(answer_to));
    put.source += piece;
    put.address += piece;
    put.left -= piece;
    return true;
}

bool traffic::send_piece_of_get(peer &from, waiting_transfer &get) {
    if (!from.take_slot(num_slots_)) {
        return false;
    }
    std::size_t const piece = std::min<std::size_t>(get.left, gex_AM_LUBReplyMedium());
    gex_AM_RequestShort7(
        job_.team, from.gex_rank(), get_handler, 0, high(get.address), low(get.address),
        static_cast<gex_AM_Arg_t>(piece), static_cast<gex_AM_Arg_t>(get.id.index),
        static_cast<gex_AM_Arg_t>(get.id.generation), high(get.offset), low(get.offset));
    get.address += piece;
    get.offset += piece;
    get.left -= piece;
    return true;
}

void traffic::put(peer &to, std::uint64_t address, const std::byte *source, std::size_t nbytes,
                  completion &source_free) {
    waiting_transfer whole;
    whole.address = address;
    whole.source = source;
    whole.left = nbytes;
    whole.answers_to = to.begin_put(num_pieces_of(nbytes), nbytes);
    while (!to.has_backlog() && whole.left > 0 && send_piece_of_put(to, whole)) {
    }
    if (whole.left == 0) {
        return;
    }
    if (whole.left <= most_kept_aside) {
        advance_until([&] { return to.has_room_for_copies() || to.is_failed(); },
                      [&] { return advance(); });
        whole.copy.assign(whole.source, whole.source + whole.left);
        whole.source = whole.copy.data();
    } else {
        source_free.begin();
        whole.source_free = &source_free;
    }

    completion *const told = whole.source_free;
    if (!to.add_to_backlog(std::move(whole)) && told != nullptr) {
        told->end(OMPX_ERR_PEER);
    }
    any_backlog_.store(true, std::memory_order_release);
}

void traffic::get(peer &from, std::uint64_t address, void *destination, std::size_t nbytes,
                  completion &done) {
    waiting_transfer whole;
    whole.address = address;
    whole.left = nbytes;
    whole.id = from.begin_get(destination, nbytes, done);
    while (!from.has_backlog() && whole.left > 0 && send_piece_of_get(from, whole)) {
    }
    if (whole.left > 0) {

        // Of a peer that has failed meanwhile it has ended.
        [[maybe_unused]] bool const waits = from.add_to_backlog(std::move(whole));
        any_backlog_.store(true, std::memory_order_release);
    }
}

bool traffic::try_send(peer &to, handler_id handler, std::span<const std::byte> payload) {
    if (!to.take_room(payload.size())) {
        return false;
    }
    if (!to.take_slot(num_slots_)) {
        to.free_room(message_cost(payload.size()));
        return false;
    }
    to.unanswered_messages.fetch_add(1, std::memory_order_relaxed);
    std::lock_guard const guard(to.send_mutex);
    gex_AM_RequestMedium2(job_.team, to.gex_rank(), message_handler,
                          const_cast<std::byte *>(payload.data()), payload.size(), GEX_EVENT_NOW, 0,
                          handler, static_cast<gex_AM_Arg_t>(to.next_to_send++));
    return true;
}

bool traffic::send_bulk(peer &to, handler_id handler, std::span<const std::byte> payload,
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
    to.unanswered_messages.fetch_add(1, std::memory_order_relaxed);
    gex_AM_RequestMedium2(job_.team, to.gex_rank(), bulk_handler, joined.data(), joined.size(),
                          GEX_EVENT_NOW, 0, handler, static_cast<gex_AM_Arg_t>(payload.size()));
    return true;
}

bool traffic::await_slot(peer &to) {
    bool taken = false;
    advance_until([&] { return (taken = to.take_slot(num_slots_)) || to.is_failed(); },
                  [&] { return advance(); });
    return taken;
}

void traffic::give_credit(peer &to) {
    if (await_slot(to)) {
        auto const handled = static_cast<gex_AM_Arg_t>(to.take_handled());
        gex_AM_RequestShort1(job_.team, to.gex_rank(), credit_handler, 0, handled);
    }
}

void traffic::ping(peer &to) {
    // Without a slot enough has been asked already.
    if (to.take_slot(num_slots_)) {
        gex_AM_RequestShort0(job_.team, to.gex_rank(), ping_handler, 0);
    }
}

void traffic::attend(peer &to) {
    std::int64_t const now = now_ns();
    std::int64_t last = to.asked_to_attend_ns.load(std::memory_order_relaxed);
    if (now - last < std::chrono::nanoseconds(ask_again_after).count() ||
        !to.asked_to_attend_ns.compare_exchange_strong(last, now, std::memory_order_relaxed)) {
        return;
    }
    // Without a slot there are requests that it hears of anyway.
    if (to.take_slot(num_slots_)) {
        gex_AM_RequestShort0(job_.team, to.gex_rank(), attend_handler, 0);
    }
}

void traffic::begin_attending() {
    attends_until_.store(now_ns() + attendance_ns, std::memory_order_relaxed);
}

bool traffic::is_attending() {
    std::int64_t until = attends_until_.load(std::memory_order_relaxed);
    if (until == 0) {
        return false;
    }
    if (now_ns() < until) {
        return true;
    }
    attends_until_.compare_exchange_strong(until, 0, std::memory_order_relaxed);
    return false;
}

void traffic::ship_backlogs() {
    any_backlog_.store(false, std::memory_order_release);
    for (auto const &each : spoken_to()) {
        if (each->has_backlog()) {
            each->ship_backlog(
                [&](waiting_transfer &transfer) { return send_piece(*each, transfer); });
        }
        if (each->has_backlog()) {
            any_backlog_.store(true, std::memory_order_release);
        }
    }
}

bool traffic::advance() {
    std::uint64_t const before = num_arrived_.load(std::memory_order_relaxed);
    gasnet_AMPoll();
    if (any_backlog_.load(std::memory_order_acquire)) {
        ship_backlogs();
    }
    return num_arrived_.load(std::memory_order_relaxed) != before;
}

void traffic::queue(world_rank source, handler_id handler, std::uint32_t number,
                    const void *payload, std::size_t nbytes) {
    peer &from = peer_of(source);
    arrived_.add_messages([&](message_queue &waiting) {
        from.put_in_order(number, handler, payload, nbytes,
                          [&](handler_id to, const std::byte *bytes, std::size_t size) {
                              waiting.add(source, to, bytes, size);
                          });
    });
}

} // namespace diomp::conduit::gasnet
