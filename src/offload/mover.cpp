// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/mover.h"

#include "offload/internal/bounce_requester.h"
#include "offload/internal/inflight_guard.h"
#include "offload/internal/remote_mover.h"
#include "offload/openmp.h"
#include "offload/path_selector.h"
#include "offload/remote_memory.h"
#include "offload/stream_copies.h"
#include "offload/translator.h"
#include "rma/blocking_transfers.h"
#include "rma/box_transfers.h"
#include "rma/device_copies.h"
#include "rma/nonblocking_transfers.h"
#include "rma/rma.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace diomp::offload {
namespace {

/// The network transfers each run as a separate message with its own handshake. Boxes with shorter
/// runs are packed and staged through host memory.
constexpr std::size_t min_row_bytes = std::size_t{32} << 10;

transfer_extents extents_of(std::span<const rma::run> runs) {
    transfer_extents extents;
    for (rma::run const &each : runs) {
        extents.remote = std::max(extents.remote, each.remote + each.nbytes);
        extents.local = std::max(extents.local, each.local + each.nbytes);
    }
    return extents;
}

ompx_event *make_event(rma::direction dir, world_rank rank, std::size_t nbytes,
                       std::function<std::optional<status>()> poll) {
    auto made = std::make_unique<ompx_event>();
    made->pending_transfer = std::make_shared<rma::pending_transfer>();
    rma::pending_transfer &pending = *made->pending_transfer;
    pending.peer = rank;
    pending.nbytes = nbytes;
    pending.dir = dir;
    pending.poll_outcome = std::move(poll);
    return made.release();
}

bool are_long_enough(std::span<const rma::run> runs) {
    return std::ranges::all_of(runs,
                               [](const rma::run &each) { return each.nbytes >= min_row_bytes; });
}

} // namespace

mover::mover(const openmp_devices &openmp, const device_segments &segments, translator &translator,
             path_selector &paths, rma::transfers &transfers, stream_copies &copies,
             bounce_requester &bounce, inflight_guard &inflight)
    : openmp_(openmp), translator_(translator), paths_(paths), transfers_(transfers),
      copies_(copies), bounce_(bounce), inflight_(inflight),
      remote_(std::make_unique<remote_mover>(segments, copies)) {}

mover::~mover() = default;

result<rma::path> mover::move(transfer_mode mode, world_rank rank, const transfer_side &remote,
                              const transfer_side &local, std::size_t nbytes,
                              translation &reusable) {
    int const num = openmp_.count();
    DIOMP_TRY(openmp_devices::check(remote.device, num, remote.argument));
    DIOMP_TRY(openmp_devices::check(local.device, num, local.argument));
    if (mode.event != nullptr) {
        *mode.event = nullptr;
    }
    if (nbytes == 0) {
        return rma::path::self;
    }
    auto found = translator_.locate(rank, remote, local, num, nbytes, reusable);
    DIOMP_TRY(found);
    device_ptr const &here = found.value().here.at;
    remote_side const &there = found.value().there;
    DIOMP_TRY(there.check_writable(mode.dir));
    DIOMP_TRY(found.value().here.check_writable(mode.dir));
    if (found.value().has_remote_processor()) {
        if (mode.nonblocking) {
            return start_remotely(mode, rank, found.value(), nbytes);
        }
        rma::run const whole{0, 0, nbytes};
        return move_remotely(mode.dir, rank, found.value(), {&whole, 1}, nullptr);
    }
    mode.on_device = !openmp_.is_host(local.device, num);
    if (here.on == nullptr && there.is_host()) {
        return start_or_move(mode, rank, there.location, here.address, nbytes);
    }
    if (auto const *const own = remote_->segment_of_sessions(there, here)) {
        rma::run const whole{0, 0, nbytes};
        return remote_->move_by_sessions(mode.dir, rank, there, *own, here, {&whole, 1});
    }
    auto selected = paths_.select(rank, there, here, {nbytes, nbytes});
    DIOMP_TRY(selected);
    selected_path const &path = selected.value();
    if (path.by != nullptr) {
        DIOMP_TRY(copy_on_stream(mode, rank, *path.by, path.there, here.address, nbytes));
        return path.path;
    }
    if (path.network) {
        return start_or_move(mode, rank, *path.network, here.address, nbytes);
    }
    DIOMP_TRY(move_through_host(mode.dir, rank, there, here, nbytes));
    return path.path;
}

result<remote_side> mover::locate(world_rank rank, const transfer_side &remote,
                                  std::size_t nbytes) {
    int const num = openmp_.count();
    DIOMP_TRY(openmp_devices::check(remote.device, num, remote.argument));
    return translator_.locate_remote(rank, remote.pointer, remote.device, num, nbytes);
}

status mover::prepare_for_regions(const accelerator &on) {
    // The proxy's, the bounce thread's (two chunks overlap), and one for the program's own calls.
    constexpr std::size_t num_buffers = 4;
    std::vector<pinned_pool::pinned_pair> buffers;
    for (std::size_t i = 0; i < num_buffers; ++i) {
        auto acquired = copies_.pinned().acquire(on);
        DIOMP_TRY(acquired);
        buffers.push_back(acquired.take());
    }
    std::byte *const first = buffers.front().base();
    DIOMP_TRY(copies_.copy(on, first + sizeof(std::uint64_t), first, sizeof(std::uint64_t)));
    return bounce_.prepare_for_regions(on);
}

result<rma::path> mover::start_or_move(transfer_mode mode, world_rank rank,
                                       const memory::location &there, std::byte *here,
                                       std::size_t nbytes) {
    if (!mode.nonblocking) {
        return transfers_.blocking().move_at(mode.dir, rank, there, here, nbytes);
    }
    if (!mode.on_device) {
        return transfers_.nonblocking().start_at(mode.dir, rank, there, here, nbytes, mode.event);
    }
    rma::local_completion local_done;
    auto started = transfers_.nonblocking().start_at(mode.dir, rank, there, here, nbytes,
                                                     mode.event, &local_done);
    inflight_.add(here, nbytes, std::move(local_done));
    return started;
}

status mover::move_through_host(rma::direction dir, world_rank rank, const remote_side &there,
                                const device_ptr &here, std::size_t nbytes) {
    bool const is_put = dir == rma::direction::put;
    if (there.device_memory) {
        return bounce_.request_from_owner(dir, rank, there.device_memory->device,
                                          there.device_memory->address, here, nbytes);
    }
    if (there.on != nullptr) {
        device_ptr const other{there.location.direct, there.on};
        device_ptr const &from = is_put ? here : other;
        device_ptr const &to = is_put ? other : here;
        return copies_.copy_out(*from.on, from.address, nbytes,
                                [&](std::byte *host, std::size_t done, std::size_t count) {
                                    return copies_.copy(*to.on, to.address + done, host, count);
                                });
    }
    auto const move_chunk = [&](std::byte *host, std::size_t done, std::size_t count) -> status {
        memory::location chunk = there.location;
        chunk.remote_address += done;
        DIOMP_TRY(transfers_.blocking().move_at(dir, rank, chunk, host, count));
        return {};
    };
    return is_put ? copies_.copy_out(*here.on, here.address, nbytes, move_chunk)
                  : copies_.copy_in(*here.on, here.address, nbytes, move_chunk);
}

status mover::copy_on_stream(transfer_mode mode, world_rank rank, const accelerator &by,
                             std::byte *there, std::byte *here, std::size_t nbytes) {
    bool const is_put = mode.dir == rma::direction::put;
    std::byte *const dst = is_put ? there : here;
    std::byte *const src = is_put ? here : there;
    if (mode.may_pin) {
        copies_.segment_pins().pin_allocation(there, nbytes, *by.backend);
        copies_.segment_pins().pin_allocation(here, nbytes, *by.backend);
    }
    if (!mode.nonblocking) {
        return copies_.copy(by, dst, src, nbytes);
    }
    inflight_.add_copy();
    auto started = by.streams->copy(by.id, dst, src, nbytes);
    DIOMP_TRY(started);
    if (mode.event == nullptr) {
        return {}; // the stream pool tracks it, and fences poll the pool
    }
    auto const poll = [streams = by.streams, ticket = started.take()]() -> std::optional<status> {
        auto const done = streams->is_done(ticket);
        if (done) {
            return done.value() ? std::optional(status{}) : std::nullopt;
        }
        return status(error(done.failure().code(), done.failure().message()));
    };
    *mode.event = make_event(mode.dir, rank, nbytes, poll);
    return {};
}

result<rma::path> mover::move_walk(rma::direction dir, world_rank rank, transfer_side remote,
                                   transfer_side local, result<rma::box_walk> made) {
    int const num = openmp_.count();
    DIOMP_TRY(openmp_devices::check(remote.device, num, remote.argument));
    DIOMP_TRY(openmp_devices::check(local.device, num, local.argument));
    DIOMP_TRY(made);
    rma::box_walk const &walk = made.value();
    if (walk.empty()) {
        return rma::path::self;
    }
    // From the first elements of a section to its lowest addresses.
    remote.pointer = static_cast<const std::byte *>(remote.pointer) + walk.remote_shift();
    local.pointer = static_cast<const std::byte *>(local.pointer) + walk.local_shift();
    auto found_here =
        translator_.locate_local(local.pointer, local.device, num, walk.local_extent());
    DIOMP_TRY(found_here);
    auto found_there =
        translator_.locate_remote(rank, remote.pointer, remote.device, num, walk.remote_extent());
    DIOMP_TRY(found_there);
    located_sides const between{found_here.value(), found_there.value()};
    device_ptr const &here = between.here.at;
    remote_side const &there = between.there;
    DIOMP_TRY(there.check_writable(dir));
    DIOMP_TRY(between.here.check_writable(dir));
    if (between.has_remote_processor()) {
        return move_remotely(dir, rank, between, walk.runs(), nullptr);
    }
    if (here.on == nullptr && there.is_host()) {
        return transfers_.boxes().move_box_at(dir, rank, there.location, here.address, walk);
    }
    return move_runs(dir, rank, there, here, {walk.remote_extent(), walk.local_extent()},
                     walk.runs());
}

result<rma::path> mover::move_remotely(rma::direction dir, world_rank rank,
                                       const located_sides &between, std::span<const rma::run> runs,
                                       transfer_start *start) {
    remote_side const &there = between.there;
    auto const move_host = [&](std::byte *host, std::span<const rma::run> packed) -> status {
        if (there.is_host()) {
            DIOMP_TRY(transfers_.boxes().move_runs_at(dir, rank, there.location, host, packed));
            return {};
        }
        DIOMP_TRY(move_runs(dir, rank, there, {host, nullptr}, extents_of(packed), packed));
        return {};
    };
    return remote_->move(dir, there, between.here, runs, move_host, start);
}

result<rma::path> mover::start_remotely(transfer_mode mode, world_rank rank,
                                        const located_sides &between, std::size_t nbytes) {
    transfers_.device_copies().enable(); // fences wait for it
    rma::run const whole{0, 0, nbytes};
    transfer_start start;
    start.has_event = mode.event != nullptr;
    auto moved = move_remotely(mode.dir, rank, between, {&whole, 1}, &start);
    if (between.here.remote_index) {
        inflight_.add(between.here.at.address, nbytes, start.in_use);
    }
    if (auto const own = remote_->own_memory_of(between.there); own != nullptr) {
        inflight_.add(own, nbytes, start.in_use);
    }
    if (moved && start.poll) {
        *mode.event = make_event(mode.dir, rank, nbytes, std::move(start.poll));
    }
    return moved;
}

result<rma::path> mover::move_runs(rma::direction dir, world_rank rank, const transfer_side &remote,
                                   const transfer_side &local, std::span<const rma::run> runs) {
    transfer_extents const extents = extents_of(runs);
    int const num = openmp_.count();
    auto here = translator_.locate_local(local.pointer, local.device, num, extents.local);
    DIOMP_TRY(here);
    auto there =
        translator_.locate_remote(rank, remote.pointer, remote.device, num, extents.remote);
    DIOMP_TRY(there);
    DIOMP_TRY(there.value().check_writable(dir));
    DIOMP_TRY(here.value().check_writable(dir));
    return move_runs(dir, rank, there.value(), here.value().at, extents, runs);
}

result<rma::path> mover::move_runs(rma::direction dir, world_rank rank, const remote_side &there,
                                   const device_ptr &here, transfer_extents extents,
                                   std::span<const rma::run> runs) {
    if (auto const *const own = remote_->segment_of_sessions(there, here)) {
        return remote_->move_by_sessions(dir, rank, there, *own, here, runs);
    }
    auto selected = paths_.select(rank, there, here, extents);
    DIOMP_TRY(selected);
    selected_path const &path = selected.value();
    if (path.by != nullptr) {
        DIOMP_TRY(copies_.copy_runs(dir, *path.by, path.there, here.address, runs));
        return path.path;
    }
    if (path.network && are_long_enough(runs)) {
        return transfers_.boxes().move_runs_at(dir, rank, *path.network, here.address, runs);
    }
    DIOMP_TRY(move_runs_through_host(dir, rank, there, here, runs));
    return path.path;
}

status mover::move_runs_through_host(rma::direction dir, world_rank rank, const remote_side &there,
                                     const device_ptr &here, std::span<const rma::run> runs) {
    if (there.device_memory) {
        return bounce_.request_from_owner(dir, rank, there.device_memory->device,
                                          there.device_memory->address, here, runs);
    }
    auto const move_packed = [&](std::byte *host, std::span<const rma::run> packed) -> status {
        if (there.on != nullptr) {
            return copies_.copy_runs(dir, *there.on, there.location.direct, host, packed);
        }
        DIOMP_TRY(transfers_.boxes().move_runs_at(dir, rank, there.location, host, packed));
        return {};
    };
    return copies_.copy_runs_through_host(dir, here, runs, move_packed);
}

} // namespace diomp::offload
