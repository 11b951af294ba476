// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/stream_copies.h"

#include "messaging/engine.h"
#include "offload/internal/chunks.h"

#include <fmt/core.h>

#include <algorithm>

namespace diomp::offload {

using rma::direction;
using rma::run;

result<pinned_pool::pinned_pair> pinned_pool::acquire(const accelerator &of) {
    {
        std::lock_guard const guard(mutex_);
        auto const found =
            std::ranges::find_if(free_, [&](const pair &each) { return each.first == of.backend; });
        if (found != free_.end()) {
            pair taken = std::move(*found);
            free_.erase(found);
            return pinned_pair(*this, std::move(taken));
        }
    }
    auto made = of.backend->allocate_pinned(num_chunks * chunk_bytes);
    DIOMP_TRY(made);
    return pinned_pair(*this, {of.backend, made.take()});
}

status stream_copies::wait_for(const accelerator &by, const device::ticket &of) {
    result<bool> done = false;
    DIOMP_TRY(engine_.wait_for_network(
        [&] {
            done = by.streams->is_done(of);
            return !done || done.value();
        },
        [&] {
            return fmt::format("waiting for a copy of {} device {}", by.backend->name(),
                               by.id.value());
        }));
    DIOMP_TRY(done);
    return {};
}

status stream_copies::copy(const accelerator &by, void *dst, const void *src, std::size_t nbytes) {
    auto started = by.streams->copy(by.id, dst, src, nbytes);
    DIOMP_TRY(started);
    return wait_for(by, started.value());
}

status stream_copies::copy_runs(direction dir, const accelerator &by, std::byte *there,
                                std::byte *here, std::span<const run> runs) {
    bool const is_put = dir == direction::put;
    std::vector<device::ticket> in_flight;
    in_flight.reserve(runs.size());
    status outcome;
    for (const run &each : runs) {
        std::byte *const dst = is_put ? there + each.remote : here + each.local;
        const std::byte *const src = is_put ? here + each.local : there + each.remote;
        auto started = by.streams->copy(by.id, dst, src, each.nbytes);
        if (!started) {
            outcome = started.take_failure();
            break;
        }
        in_flight.push_back(started.take());
    }
    for (const device::ticket &each :
         in_flight) { // also after an error, since copies use the memory
        keep_first_error(outcome, wait_for(by, each));
    }
    return outcome;
}

status stream_copies::copy_out(const accelerator &from, const std::byte *src, std::size_t nbytes,
                               chunk_function consume) {
    auto buffers = pinned_.acquire(from);
    DIOMP_TRY(buffers);
    return run_pipeline(
        buffers.value().base(), pinned_pool::num_chunks, nbytes,
        [&](const chunk &next) {
            return from.streams->copy(from.id, next.slot, src + next.begin, next.nbytes);
        },
        [&](const chunk &, const device::ticket &coming) { return wait_for(from, coming); },
        [&](const chunk &here) { return consume(here.slot, here.begin, here.nbytes); });
}

status stream_copies::copy_in(const accelerator &to, std::byte *dst, std::size_t nbytes,
                              chunk_function produce) {
    auto buffers = pinned_.acquire(to);
    DIOMP_TRY(buffers);
    return run_pipeline(
        buffers.value().base(), pinned_pool::num_chunks, nbytes,
        [&](const chunk &next) -> result<device::ticket> {
            DIOMP_TRY(produce(next.slot, next.begin, next.nbytes));
            return to.streams->copy(to.id, dst + next.begin, next.slot, next.nbytes);
        },
        [&](const chunk &, const device::ticket &in_flight) { return wait_for(to, in_flight); },
        [](const chunk &) { return status(); });
}

status stream_copies::copy_runs_through_host(direction dir, const device_ptr &here,
                                             std::span<const run> runs, packed_function move) {
    auto buffers = pinned_.acquire(*here.on);
    DIOMP_TRY(buffers);
    std::byte *const slot = buffers.value().base();
    for (const packed_runs &batch : pack(runs, 0)) {
        auto const local = batch.to_local(0);
        auto const remote = batch.to_remote(0);
        if (dir == direction::put) {
            DIOMP_TRY(copy_runs(dir, *here.on, slot, here.address, local));
            DIOMP_TRY(move(slot, remote));
        } else {
            DIOMP_TRY(move(slot, remote));
            DIOMP_TRY(copy_runs(dir, *here.on, slot, here.address, local));
        }
    }
    return {};
}

} // namespace diomp::offload
