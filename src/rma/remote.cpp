// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Transfers to and from ranks that are not mapped here: through the conduit's put and get, or, for
// registered private memory, in messages. And the fence that completes them.
#include "rma/rma.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>

namespace diomp::rma {
namespace {

/// Small puts with an event may travel together until somebody asks for one of them; from here up
/// the flush starts at once, so that it is over when somebody asks.
constexpr std::size_t flush_at_once_bytes = std::size_t{16} << 10;

std::string description(direction way, world_rank peer, std::size_t nbytes) {
    return fmt::format("waiting for a {} of {} bytes {} rank {}",
                       way == direction::put ? "put" : "get", nbytes,
                       way == direction::put ? "to" : "from", peer.value());
}

} // namespace

} // namespace diomp::rma

std::string ompx_event::describe() const {
    return moving == nullptr ? "waiting for an event"
                             : diomp::rma::description(moving->way, moving->peer, moving->nbytes);
}

namespace diomp::rma {

status transfers::begin_remote(direction way, world_rank peer, const memory::place &place,
                               void *local, std::size_t nbytes, conduit::completion &count) {
    if (!place.in_segment) {
        copies_.start(way, peer, place.remote_address, local, nbytes, count);
        return {};
    }
    conduit::conduit &transport = engine_.transport();
    std::uint64_t const there = place.remote_address;
    if (!place.ends.are_host()) [[unlikely]] {
        return way == direction::put
                   ? transport.put_between(peer, there, local, nbytes, place.ends, count)
                   : transport.get_between(peer, there, local, nbytes, place.ends, count);
    }
    return way == direction::put ? transport.put(peer, there, local, nbytes, count)
                                 : transport.get(peer, there, local, nbytes, count);
}

status transfers::end_remote(direction way, world_rank peer, const memory::place &place,
                             std::size_t nbytes, conduit::flight &flight) {
    status waited = flight.wait(engine_, [&] { return description(way, peer, nbytes); });
    if (waited) {
        return {};
    }
    if (!place.in_segment) {
        copies_.give_up(flight.count());
        if (waited.failure().code() == OMPX_ERR_ADDRESS) {
            return refused(peer, place, nbytes);
        }
    }
    return waited;
}

/// The owner says that the range is not registered: what was known about it is out of date.
status transfers::refused(world_rank peer, const memory::place &place, std::size_t nbytes) {
    directory_.forget(peer);
    DIOMP_TRY(space_.locate(peer, reinterpret_cast<const void *>(place.remote_address), nbytes));
    return error(OMPX_ERR_ADDRESS,
                 fmt::format("rank {} has unregistered the range meanwhile", peer.value()));
}

result<path> transfers::move_remote(direction way, world_rank peer, const memory::place &place,
                                    void *local, std::size_t nbytes) {
    conduit::flight flight;
    DIOMP_TRY(begin_remote(way, peer, place, local, nbytes, flight.count()));
    DIOMP_TRY(end_remote(way, peer, place, nbytes, flight));
    return place.in_segment ? path::conduit : path::message;
}

result<path> transfers::move_runs_at(direction way, world_rank peer, const memory::place &place,
                                     void *local, std::span<const run> runs) {
    auto *const here = static_cast<std::byte *>(local);
    auto const place_of = [&place](const run &each) {
        memory::place at = place;
        at.remote_address += each.remote;
        at.direct = at.direct == nullptr ? nullptr : at.direct + each.remote;
        return at;
    };
    if (!is_remote(peer)) {
        path taken = path::self;
        for (const run &each : runs) {
            auto moved = move_at(way, peer, place_of(each), here + each.local, each.nbytes);
            DIOMP_TRY(moved);
            taken = moved.value();
        }
        return taken;
    }
    // The conduit sends short puts together.
    conduit::flight flight;
    status begun;
    std::size_t extent = 0;
    for (const run &each : runs) {
        extent = std::max(extent, each.remote + each.nbytes);
        if (begun) {
            begun = begin_remote(way, peer, place_of(each), here + each.local, each.nbytes,
                                 flight.count());
        }
    }
    // Also after an error: what was started still uses the caller's array.
    status ended = end_remote(way, peer, place, extent, flight);
    DIOMP_TRY(std::move(begun));
    DIOMP_TRY(std::move(ended));
    return place.in_segment ? path::conduit : path::message;
}

result<bool> transfers::begin_box_remote(direction way, world_rank peer, const memory::place &place,
                                         std::byte *local, const box_walk &walk,
                                         conduit::completion &count) {
    if (!place.in_segment || walk.is_contiguous() || !walk.is_ascending()) {
        return false;
    }
    conduit::conduit &transport = engine_.transport();
    std::uint64_t const there = place.remote_address + walk.remote_begin();
    std::byte *const here = local + walk.local_begin();
    return way == direction::put ? transport.put_rows(peer, there, here, walk.rows(), count)
                                 : transport.get_rows(peer, there, here, walk.rows(), count);
}

/// Rows together where the conduit does that, else run by run.
result<path> transfers::move_box_remote(direction way, world_rank peer, const memory::place &place,
                                        std::byte *local, const box_walk &walk) {
    conduit::flight flight;
    auto together = begin_box_remote(way, peer, place, local, walk, flight.count());
    DIOMP_TRY(together);
    if (together.value()) {
        DIOMP_TRY(end_remote(way, peer, place, walk.remote_extent(), flight));
        return path::conduit;
    }
    return move_runs_at(way, peer, place, local, walk.runs());
}

result<path> transfers::start_put(world_rank peer, void *remote, const void *local,
                                  std::size_t nbytes, ompx_event_t *event) {
    return start(direction::put, peer, remote, const_cast<void *>(local), nbytes, event);
}

result<path> transfers::start_get(world_rank peer, const void *remote, void *local,
                                  std::size_t nbytes, ompx_event_t *event) {
    return start(direction::get, peer, remote, local, nbytes, event);
}

result<path> transfers::start(direction way, world_rank peer, const void *remote, void *local,
                              std::size_t nbytes, ompx_event_t *event) {
    if (nbytes == 0) {
        if (event != nullptr) {
            *event = nullptr;
        }
        return path::self;
    }
    auto place = space_.locate(peer, remote, nbytes);
    DIOMP_TRY(place);
    return start_at(way, peer, place.value(), local, nbytes, event);
}

result<path> transfers::start_at(direction way, world_rank peer, const memory::place &place,
                                 void *local, std::size_t nbytes, ompx_event_t *event,
                                 local_use *use) {
    if (!is_remote(peer)) {
        auto moved = move_at(way, peer, place, local, nbytes);
        DIOMP_TRY(moved);
        if (event != nullptr) {
            *event = nullptr;
        }
        return moved;
    }
    if (event == nullptr) {
        return start_unnamed(way, peer, place, local, nbytes, use);
    }
    auto made = std::make_unique<ompx_event>();
    made->moving = std::make_shared<moving>();
    moving &going = *made->moving;
    going.peer = peer;
    going.place = place;
    going.nbytes = nbytes;
    going.way = way;
    if (options_.on_flight) {
        going.begin = std::chrono::steady_clock::now();
    }
    going.flush_due = way == direction::put && going.place.in_segment;
    DIOMP_TRY(begin_remote(way, peer, going.place, local, nbytes, going.count));
    if (use != nullptr) {
        *use = local_use(made->moving, &going.count);
    }
    path const taken = going.place.in_segment ? path::conduit : path::message;
    ompx_event *const given = made.release();
    if (!going.flush_due || nbytes >= flush_at_once_bytes) {
        advance(*given);
    }
    if (given->is_done()) {
        status outcome = std::move(given->outcome);
        given->release();
        DIOMP_TRY(std::move(outcome));
        *event = nullptr;
        return taken;
    }
    *event = given;
    return taken;
}

result<path> transfers::start_unnamed(direction way, world_rank peer, const memory::place &place,
                                      void *local, std::size_t nbytes, local_use *use) {
    bool const observed = static_cast<bool>(options_.on_flight);
    auto going = unnamed_.begin(observed);
    auto const begin =
        observed ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point{};
    DIOMP_TRY(begin_remote(way, peer, place, local, nbytes, going.count()));
    if (use != nullptr) {
        *use = going.shared();
    }
    // So that a large one is over when the fence asks.
    if (way == direction::put && place.in_segment && (observed || nbytes >= flush_at_once_bytes)) {
        flush_into(peer, going.count());
    }
    if (observed) {
        engine_.watch(going.shared(), [this, way, peer, nbytes, begin] {
            options_.on_flight(way, peer, nbytes, begin);
        });
    }
    return place.in_segment ? path::conduit : path::message;
}

void transfers::flush_into(world_rank peer, conduit::completion &count) {
    if (status const flushing = engine_.transport().flush(peer, count); !flushing) {
        // The put itself may still be using the source: fail when that is over.
        count.begin();
        count.end(flushing.failure().code());
    }
}

void transfers::advance(ompx_event &event) {
    if (event.moving == nullptr || event.is_done()) {
        return;
    }
    moving &going = *event.moving;
    if (going.flush_due) {
        going.flush_due = false;
        flush_into(going.peer, going.count);
    }
    if (going.copy) {
        if (auto outcome = going.copy()) {
            event.complete(std::move(*outcome));
        }
        return;
    }
    if (going.count.is_done()) {
        if (options_.on_flight) {
            options_.on_flight(going.way, going.peer, going.nbytes, going.begin);
        }
        event.complete(
            conduit::outcome_of(going.count, engine_, [&event] { return event.describe(); }));
    }
}

result<path> transfers::put_then(world_rank peer, void *remote, const void *local,
                                 std::size_t nbytes, continuation then) {
    return move_then(direction::put, peer, remote, const_cast<void *>(local), nbytes,
                     std::move(then));
}

result<path> transfers::get_then(world_rank peer, const void *remote, void *local,
                                 std::size_t nbytes, continuation then) {
    return move_then(direction::get, peer, remote, local, nbytes, std::move(then));
}

result<path> transfers::move_then(direction way, world_rank peer, const void *remote, void *local,
                                  std::size_t nbytes, continuation then) {
    if (nbytes == 0 || !is_remote(peer)) {
        auto moved = move(way, peer, remote, local, nbytes);
        DIOMP_TRY(moved);
        then({});
        return moved;
    }
    auto place = space_.locate(peer, remote, nbytes);
    DIOMP_TRY(place);
    auto count = std::make_shared<conduit::completion>();
    auto const begin = options_.on_flight ? std::chrono::steady_clock::now()
                                          : std::chrono::steady_clock::time_point{};
    DIOMP_TRY(begin_remote(way, peer, place.value(), local, nbytes, *count));
    if (way == direction::put && place.value().in_segment) {
        flush_into(peer, *count);
    }
    auto finished = [this, way, peer, nbytes, count, begin, then = std::move(then)] {
        if (options_.on_flight) {
            options_.on_flight(way, peer, nbytes, begin);
        }
        then(conduit::outcome_of(*count, engine_,
                                 [way, peer, nbytes] { return description(way, peer, nbytes); }));
    };
    if (count->is_done()) {
        finished();
    } else {
        engine_.watch(count, std::move(finished));
    }
    return place.value().in_segment ? path::conduit : path::message;
}

status transfers::wait_for_local(std::span<const local_use> uses) {
    unnamed_.close(); // others would join what is waited for
    return engine_.wait_for_network(
        [uses] {
            return std::ranges::all_of(uses, [](const local_use &each) { return each->is_done(); });
        },
        [] { return std::string("waiting for own transfers with memory that is to be freed"); });
}

status transfers::wait_for_acks() {
    std::uint64_t const end = acks_.end();
    if (!acks_.all_closed_before(end)) {
        DIOMP_TRY(engine_.wait_for_network(
            [&] { return acks_.all_closed_before(end); },
            [] { return std::string("waiting for signals and atomic operations to arrive"); }));
    }
    return acks_.take_failure();
}

status transfers::wait_for_devices() {
    if (!devices_copy_.load(std::memory_order_relaxed)) {
        return {};
    }
    result<bool> idle = true;
    DIOMP_TRY(engine_.wait_for_network(
        [&] {
            idle = devices_are_idle_();
            return !idle || idle.value();
        },
        [] { return std::string("waiting for copies of devices"); }));
    DIOMP_TRY(idle);
    return {};
}

status transfers::flush(world_rank peer) {
    if (is_remote(peer)) {
        conduit::flight flight;
        DIOMP_TRY(engine_.transport().flush(peer, flight.count()));
        DIOMP_TRY(flight.wait(engine_, [peer] {
            return fmt::format("waiting for puts to be complete at rank {}", peer.value());
        }));
    }
    full_fence();
    return {};
}

status transfers::fence() {
    if (!all_direct_) {
        conduit::flight flight;
        DIOMP_TRY(engine_.transport().flush_all(flight.count()));
        DIOMP_TRY(wait_for_devices());
        DIOMP_TRY(flight.wait(
            engine_, [] { return std::string("waiting for puts to be complete at all ranks"); }));
        DIOMP_TRY(unnamed_.wait(engine_));
        DIOMP_TRY(wait_for_acks());
    } else {
        DIOMP_TRY(wait_for_devices());
    }
    full_fence();
    return {};
}

status transfers::fence(std::span<const world_rank> peers) {
    if (!all_direct_) {
        conduit::flight flight;
        for (world_rank const peer : peers) {
            if (is_remote(peer)) {
                DIOMP_TRY(engine_.transport().flush(peer, flight.count()));
            }
        }
        DIOMP_TRY(flight.wait(engine_, [&] {
            return fmt::format("waiting for puts to be complete at {} ranks of a group",
                               peers.size());
        }));
        DIOMP_TRY(unnamed_.wait(engine_));
        DIOMP_TRY(wait_for_acks());
    }
    DIOMP_TRY(wait_for_devices());
    full_fence();
    return {};
}

} // namespace diomp::rma
