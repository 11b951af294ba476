// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Transfers to and from ranks that are not mapped here: by the conduit's put and get, or, for
// registered private memory, by messages. Also the fence that completes them.
#include "rma/rma.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>

namespace diomp::rma {
namespace {

/// Small puts with an event are aggregated until one of the events is tested. From this size up the
/// flush starts at once, so that it is complete when the event is tested.
constexpr std::size_t immediate_flush_bytes = std::size_t{16} << 10;

std::string description(direction dir, world_rank peer, std::size_t nbytes) {
    return fmt::format("waiting for a {} of {} bytes {} rank {}",
                       dir == direction::put ? "put" : "get", nbytes,
                       dir == direction::put ? "to" : "from", peer.value());
}

} // namespace

} // namespace diomp::rma

std::string ompx_event::describe() const {
    return pending_transfer == nullptr
               ? "waiting for an event"
               : diomp::rma::description(pending_transfer->dir, pending_transfer->peer,
                                         pending_transfer->nbytes);
}

namespace diomp::rma {

status transfers::begin_remote(direction dir, world_rank peer, const memory::location &location,
                               void *local, std::size_t nbytes, transport::completion &count) {
    if (!location.in_segment) {
        copies_.start(dir, peer, location.remote_address, local, nbytes, count);
        return {};
    }
    transport::conduit &transport = engine_.transport();
    std::uint64_t const there = location.remote_address;
    if (!location.kinds.are_host()) [[unlikely]] {
        return dir == direction::put
                   ? transport.put_device_memory(peer, there, local, nbytes, location.kinds, count)
                   : transport.get_device_memory(peer, there, local, nbytes, location.kinds, count);
    }
    return dir == direction::put ? transport.put(peer, there, local, nbytes, count)
                                 : transport.get(peer, there, local, nbytes, count);
}

status transfers::wait_for_remote(direction dir, world_rank peer, const memory::location &location,
                                  std::size_t nbytes,
                                  messaging::pooled_completion &pooled_completion) {
    status waited = pooled_completion.wait(engine_, [&] { return description(dir, peer, nbytes); });
    if (waited) {
        return {};
    }
    if (!location.in_segment) {
        copies_.cancel(pooled_completion.count());
        if (waited.failure().code() == OMPX_ERR_ADDRESS) {
            return refused(peer, location, nbytes);
        }
    }
    return waited;
}

/// After the owner's refusal: drops the cached ranges of the peer and composes the error.
status transfers::refused(world_rank peer, const memory::location &location, std::size_t nbytes) {
    directory_.invalidate(peer);
    DIOMP_TRY(space_.locate(peer, reinterpret_cast<const void *>(location.remote_address), nbytes));
    return error(OMPX_ERR_ADDRESS,
                 fmt::format("rank {} has unregistered the range meanwhile", peer.value()));
}

result<path> transfers::move_remote(direction dir, world_rank peer,
                                    const memory::location &location, void *local,
                                    std::size_t nbytes) {
    messaging::pooled_completion pooled_completion;
    DIOMP_TRY(begin_remote(dir, peer, location, local, nbytes, pooled_completion.count()));
    DIOMP_TRY(wait_for_remote(dir, peer, location, nbytes, pooled_completion));
    return location.in_segment ? path::conduit : path::message;
}

result<path> transfers::move_runs_at(direction dir, world_rank peer,
                                     const memory::location &location, void *local,
                                     std::span<const run> runs) {
    auto *const here = static_cast<std::byte *>(local);
    auto const location_of = [&location](const run &each) {
        memory::location at = location;
        at.remote_address += each.remote;
        at.direct = at.direct == nullptr ? nullptr : at.direct + each.remote;
        return at;
    };
    if (!is_remote(peer)) {
        path taken = path::self;
        for (const run &each : runs) {
            auto moved = move_at(dir, peer, location_of(each), here + each.local, each.nbytes);
            DIOMP_TRY(moved);
            taken = moved.value();
        }
        return taken;
    }
    // The conduit aggregates short puts.
    messaging::pooled_completion pooled_completion;
    status started;
    std::size_t extent = 0;
    for (const run &each : runs) {
        extent = std::max(extent, each.remote + each.nbytes);
        if (started) {
            started = begin_remote(dir, peer, location_of(each), here + each.local, each.nbytes,
                                   pooled_completion.count());
        }
    }
    // Also after an error: transfers that have started still use the caller's array.
    status ended = wait_for_remote(dir, peer, location, extent, pooled_completion);
    DIOMP_TRY(std::move(started));
    DIOMP_TRY(std::move(ended));
    return location.in_segment ? path::conduit : path::message;
}

result<bool> transfers::begin_box_remote(direction dir, world_rank peer,
                                         const memory::location &location, std::byte *local,
                                         const box_walk &walk, transport::completion &count) {
    if (!location.in_segment || walk.is_contiguous() || !walk.is_ascending()) {
        return false;
    }
    transport::conduit &transport = engine_.transport();
    std::uint64_t const there = location.remote_address + walk.remote_begin();
    std::byte *const here = local + walk.local_begin();
    return dir == direction::put ? transport.put_rows(peer, there, here, walk.rows(), count)
                                 : transport.get_rows(peer, there, here, walk.rows(), count);
}

/// All rows in one call if the conduit supports that, otherwise run by run.
result<path> transfers::move_box_remote(direction dir, world_rank peer,
                                        const memory::location &location, std::byte *local,
                                        const box_walk &walk) {
    messaging::pooled_completion pooled_completion;
    auto together = begin_box_remote(dir, peer, location, local, walk, pooled_completion.count());
    DIOMP_TRY(together);
    if (together.value()) {
        DIOMP_TRY(wait_for_remote(dir, peer, location, walk.remote_extent(), pooled_completion));
        return path::conduit;
    }
    return move_runs_at(dir, peer, location, local, walk.runs());
}

result<path> transfers::start_put(world_rank peer, void *remote, const void *local,
                                  std::size_t nbytes, ompx_event_t *event) {
    return start(direction::put, peer, remote, const_cast<void *>(local), nbytes, event);
}

result<path> transfers::start_get(world_rank peer, const void *remote, void *local,
                                  std::size_t nbytes, ompx_event_t *event) {
    return start(direction::get, peer, remote, local, nbytes, event);
}

result<path> transfers::start(direction dir, world_rank peer, const void *remote, void *local,
                              std::size_t nbytes, ompx_event_t *event) {
    if (nbytes == 0) {
        if (event != nullptr) {
            *event = nullptr;
        }
        return path::self;
    }
    auto location = space_.locate(peer, remote, nbytes);
    DIOMP_TRY(location);
    return start_at(dir, peer, location.value(), local, nbytes, event);
}

result<path> transfers::start_at(direction dir, world_rank peer, const memory::location &location,
                                 void *local, std::size_t nbytes, ompx_event_t *event,
                                 local_completion *local_done) {
    if (!is_remote(peer)) {
        auto moved = move_at(dir, peer, location, local, nbytes);
        DIOMP_TRY(moved);
        if (event != nullptr) {
            *event = nullptr;
        }
        return moved;
    }
    if (event == nullptr) {
        return start_implicit(dir, peer, location, local, nbytes, local_done);
    }
    auto made = std::make_unique<ompx_event>();
    made->pending_transfer = std::make_shared<pending_transfer>();
    pending_transfer &transfer = *made->pending_transfer;
    transfer.peer = peer;
    transfer.location = location;
    transfer.nbytes = nbytes;
    transfer.dir = dir;
    if (options_.on_transfer_complete) {
        transfer.begin = std::chrono::steady_clock::now();
    }
    transfer.flush_due = dir == direction::put && transfer.location.in_segment;
    DIOMP_TRY(begin_remote(dir, peer, transfer.location, local, nbytes, transfer.count));
    if (local_done != nullptr) {
        *local_done = local_completion(made->pending_transfer, &transfer.count);
    }
    path const taken = transfer.location.in_segment ? path::conduit : path::message;
    ompx_event *const given = made.release();
    if (!transfer.flush_due || nbytes >= immediate_flush_bytes) {
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

result<path> transfers::start_implicit(direction dir, world_rank peer,
                                       const memory::location &location, void *local,
                                       std::size_t nbytes, local_completion *local_done) {
    bool const observed = static_cast<bool>(options_.on_transfer_complete);
    auto transfer = implicit_.begin(observed);
    auto const begin =
        observed ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point{};
    DIOMP_TRY(begin_remote(dir, peer, location, local, nbytes, transfer.count()));
    if (local_done != nullptr) {
        *local_done = transfer.shared();
    }
    // A large put is flushed at once, so that it is complete at the fence.
    if (dir == direction::put && location.in_segment &&
        (observed || nbytes >= immediate_flush_bytes)) {
        flush_into(peer, transfer.count());
    }
    if (observed) {
        engine_.on_completion(transfer.shared(), [this, dir, peer, nbytes, begin] {
            options_.on_transfer_complete(dir, peer, nbytes, begin);
        });
    }
    return location.in_segment ? path::conduit : path::message;
}

void transfers::flush_into(world_rank peer, transport::completion &count) {
    if (status const flushing = engine_.transport().flush(peer, count); !flushing) {
        // The put itself may still use the source: the failure counts after that.
        count.begin();
        count.end(flushing.failure().code());
    }
}

void transfers::advance(ompx_event &event) {
    if (event.pending_transfer == nullptr || event.is_done()) {
        return;
    }
    pending_transfer &transfer = *event.pending_transfer;
    if (transfer.flush_due) {
        transfer.flush_due = false;
        flush_into(transfer.peer, transfer.count);
    }
    if (transfer.copy) {
        if (auto outcome = transfer.copy()) {
            event.complete(std::move(*outcome));
        }
        return;
    }
    if (transfer.count.is_done()) {
        if (options_.on_transfer_complete) {
            options_.on_transfer_complete(transfer.dir, transfer.peer, transfer.nbytes,
                                          transfer.begin);
        }
        event.complete(
            messaging::outcome_of(transfer.count, engine_, [&event] { return event.describe(); }));
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

result<path> transfers::move_then(direction dir, world_rank peer, const void *remote, void *local,
                                  std::size_t nbytes, continuation then) {
    if (nbytes == 0 || !is_remote(peer)) {
        auto moved = move(dir, peer, remote, local, nbytes);
        DIOMP_TRY(moved);
        then({});
        return moved;
    }
    auto location = space_.locate(peer, remote, nbytes);
    DIOMP_TRY(location);
    auto count = std::make_shared<transport::completion>();
    auto const begin = options_.on_transfer_complete ? std::chrono::steady_clock::now()
                                                     : std::chrono::steady_clock::time_point{};
    DIOMP_TRY(begin_remote(dir, peer, location.value(), local, nbytes, *count));
    if (dir == direction::put && location.value().in_segment) {
        flush_into(peer, *count);
    }
    auto finished = [this, dir, peer, nbytes, count, begin, then = std::move(then)] {
        if (options_.on_transfer_complete) {
            options_.on_transfer_complete(dir, peer, nbytes, begin);
        }
        then(messaging::outcome_of(*count, engine_,
                                   [dir, peer, nbytes] { return description(dir, peer, nbytes); }));
    };
    if (count->is_done()) {
        finished();
    } else {
        engine_.on_completion(count, std::move(finished));
    }
    return location.value().in_segment ? path::conduit : path::message;
}

status transfers::wait_for_local_completion(std::span<const local_completion> completions) {
    implicit_.close(); // later transfers must not join the counts that are waited for
    return engine_.wait_for_network(
        [completions] {
            return std::ranges::all_of(
                completions, [](const local_completion &each) { return each->is_done(); });
        },
        [] {
            return std::string(
                "waiting for this rank's transfers from or to memory that is being freed");
        });
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
    if (!has_device_copies_.load(std::memory_order_relaxed)) {
        return {};
    }
    result<bool> idle = true;
    DIOMP_TRY(engine_.wait_for_network(
        [&] {
            idle = device_idle_query_();
            return !idle || idle.value();
        },
        [] { return std::string("waiting for device copies"); }));
    DIOMP_TRY(idle);
    return {};
}

status transfers::flush(world_rank peer) {
    if (is_remote(peer)) {
        messaging::pooled_completion pooled_completion;
        DIOMP_TRY(engine_.transport().flush(peer, pooled_completion.count()));
        DIOMP_TRY(pooled_completion.wait(engine_, [peer] {
            return fmt::format("waiting for puts to be complete at rank {}", peer.value());
        }));
    }
    full_fence();
    return {};
}

status transfers::fence() {
    if (!all_direct_) {
        messaging::pooled_completion pooled_completion;
        DIOMP_TRY(engine_.transport().flush_all(pooled_completion.count()));
        DIOMP_TRY(wait_for_devices());
        DIOMP_TRY(pooled_completion.wait(
            engine_, [] { return std::string("waiting for puts to be complete at all ranks"); }));
        DIOMP_TRY(implicit_.wait(engine_));
        DIOMP_TRY(wait_for_acks());
    } else {
        DIOMP_TRY(wait_for_devices());
    }
    full_fence();
    return {};
}

status transfers::fence(std::span<const world_rank> peers) {
    if (!all_direct_) {
        messaging::pooled_completion pooled_completion;
        for (world_rank const peer : peers) {
            if (is_remote(peer)) {
                DIOMP_TRY(engine_.transport().flush(peer, pooled_completion.count()));
            }
        }
        DIOMP_TRY(pooled_completion.wait(engine_, [&] {
            return fmt::format("waiting for puts to be complete at {} ranks of a group",
                               peers.size());
        }));
        DIOMP_TRY(implicit_.wait(engine_));
        DIOMP_TRY(wait_for_acks());
    }
    DIOMP_TRY(wait_for_devices());
    full_fence();
    return {};
}

} // namespace diomp::rma
