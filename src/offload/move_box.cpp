// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Boxes in device memory: the ways of move.cpp, with a copy per run where a queue copies, and runs
// packed into pieces where they go through host memory.
#include "offload/offload.h"

#include <algorithm>
#include <span>
#include <vector>

namespace diomp::offload {
namespace {

/// Each run that the network moves by itself is a message and an agreement on where it goes;
/// shorter ones are packed for the detour through the host.
constexpr std::size_t least_row_bytes = std::size_t{32} << 10;

bool are_worth_messages(std::span<const rma::run> runs) {
    return std::ranges::all_of(runs,
                               [](const rma::run &each) { return each.nbytes >= least_row_bytes; });
}

} // namespace

result<rma::path> devices::move_box(rma::direction way, world_rank rank, const side &remote,
                                    const side &local, const rma::box &shape) {
    int const num = num_devices();
    DIOMP_TRY(check_device(remote.device, num, remote.argument));
    DIOMP_TRY(check_device(local.device, num, local.argument));
    auto made = rma::box_walk::make(shape);
    DIOMP_TRY(made);
    rma::box_walk const &walk = made.value();
    if (walk.empty()) {
        return rma::path::self;
    }
    auto found_here = locate_local(local.pointer, local.device, num, walk.local_extent());
    DIOMP_TRY(found_here);
    auto found_there =
        locate_remote(rank, remote.pointer, remote.device, num, walk.remote_extent());
    DIOMP_TRY(found_there);
    end const &here = found_here.value().at;
    remote_side const &there = found_there.value();
    DIOMP_TRY(check_writable(there, way));
    if (there.far) {
        return box_far(way, rank, *there.far, here, walk);
    }
    if (there.on != nullptr) {
        return box_within(way, {there.place.direct, there.on}, here, walk);
    }
    if (here.on != nullptr) {
        return box_host(way, rank, there.place, here, walk);
    }
    return transfers_.move_box_at(way, rank, there.place, here.address, walk);
}

result<rma::path> devices::box_far(rma::direction way, world_rank rank, const far_memory &there,
                                   const end &here, const rma::box_walk &walk) {
    if (there.offset && allows(options_.paths, device_ways::ipc) &&
        engine_.transport().direct_base(rank) != nullptr) {
        auto opened = peers_.open(rank, there.device, *there.offset, walk.remote_extent(), here.on);
        if (opened) {
            DIOMP_TRY(bounce_.copy_runs(way, *opened.value().by, opened.value().address,
                                        here.address, walk.runs()));
            return rma::path::ipc;
        }
        if (opened.failure().code() != OMPX_ERR_UNSUPPORTED) {
            return opened.take_failure();
        }
    }
    std::vector<rma::run> const runs = walk.runs();
    if (auto const between =
            place_for_network(rank, there, here, {walk.remote_extent(), walk.local_extent()});
        between && are_worth_messages(runs)) {
        return transfers_.move_runs_at(way, rank, *between, here.address, runs);
    }
    DIOMP_TRY(bounce_.ask_owner(way, rank, there.device, there.address, here, runs));
    return rma::path::bounce;
}

result<rma::path> devices::box_within(rma::direction way, const end &there, const end &here,
                                      const rma::box_walk &walk) {
    accelerator const &by = here.on != nullptr ? *here.on : *there.on;
    if (here.on == nullptr || here.on == there.on) {
        DIOMP_TRY(bounce_.copy_runs(way, by, there.address, here.address, walk.runs()));
        return rma::path::device;
    }
    if (allows(options_.paths, device_ways::peer) && here.on->backend == there.on->backend) {
        auto const reached = by.backend->can_reach(by.id, there.on->id);
        if (reached && reached.value()) {
            DIOMP_TRY(bounce_.copy_runs(way, by, there.address, here.address, walk.runs()));
            return rma::path::peer_device;
        }
    }
    DIOMP_TRY(bounce_.through_host(
        way, here, walk.runs(), [&](std::byte *host, std::span<const rma::run> packed) {
            return bounce_.copy_runs(way, *there.on, there.address, host, packed);
        }));
    return rma::path::bounce;
}

result<rma::path> devices::box_host(rma::direction way, world_rank rank, const memory::place &there,
                                    const end &here, const rma::box_walk &walk) {
    if (there.direct != nullptr) {
        DIOMP_TRY(bounce_.copy_runs(way, *here.on, there.direct, here.address, walk.runs()));
        return rma::path::device;
    }
    std::vector<rma::run> const runs = walk.runs();
    if (auto const between =
            place_for_network(rank, there, here, {walk.remote_extent(), walk.local_extent()});
        between && are_worth_messages(runs)) {
        return transfers_.move_runs_at(way, rank, *between, here.address, runs);
    }
    auto const move_packed = [&](std::byte *host, std::span<const rma::run> packed) -> status {
        DIOMP_TRY(transfers_.move_runs_at(way, rank, there, host, packed));
        return {};
    };
    DIOMP_TRY(bounce_.through_host(way, here, runs, move_packed));
    return rma::path::bounce;
}

} // namespace diomp::offload
