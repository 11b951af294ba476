// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Boxes in device memory: the paths of move.cpp, with one copy per run where a queue copies, and
// runs packed into chunks where they go through host memory.
#include "offload/offload.h"

#include <algorithm>
#include <span>
#include <vector>

namespace diomp::offload {
namespace {

/// The network transfers each run as a separate message with its own handshake. Boxes with shorter
/// runs are packed and staged through host memory.
constexpr std::size_t min_row_bytes = std::size_t{32} << 10;

bool are_long_enough(std::span<const rma::run> runs) {
    return std::ranges::all_of(runs,
                               [](const rma::run &each) { return each.nbytes >= min_row_bytes; });
}

} // namespace

result<rma::path> devices::move_box(rma::direction dir, world_rank rank, const side &remote,
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
    device_ptr const &here = found_here.value().at;
    remote_side const &there = found_there.value();
    DIOMP_TRY(check_writable(there, dir));
    if (there.device_memory) {
        return box_remote_device(dir, rank, *there.device_memory, here, walk);
    }
    if (there.on != nullptr) {
        return box_in_process(dir, {there.location.direct, there.on}, here, walk);
    }
    if (here.on != nullptr) {
        return box_host(dir, rank, there.location, here, walk);
    }
    return transfers_.move_box_at(dir, rank, there.location, here.address, walk);
}

result<rma::path> devices::box_remote_device(rma::direction dir, world_rank rank,
                                             const remote_device_memory &there,
                                             const device_ptr &here, const rma::box_walk &walk) {
    if (there.offset && allows(options_.paths, device_path_set::ipc) &&
        engine_.transport().direct_base(rank) != nullptr) {
        auto opened = peers_.open(rank, there.device, *there.offset, walk.remote_extent(), here.on);
        if (opened) {
            DIOMP_TRY(copies_.copy_runs(dir, *opened.value().by, opened.value().address,
                                        here.address, walk.runs()));
            return rma::path::ipc;
        }
        if (opened.failure().code() != OMPX_ERR_UNSUPPORTED) {
            return opened.take_failure();
        }
    }
    std::vector<rma::run> const runs = walk.runs();
    if (auto const between =
            location_for_network(rank, there, here, {walk.remote_extent(), walk.local_extent()});
        between && are_long_enough(runs)) {
        return transfers_.move_runs_at(dir, rank, *between, here.address, runs);
    }
    DIOMP_TRY(bounce_.request_from_owner(dir, rank, there.device, there.address, here, runs));
    return rma::path::bounce;
}

result<rma::path> devices::box_in_process(rma::direction dir, const device_ptr &there,
                                          const device_ptr &here, const rma::box_walk &walk) {
    accelerator const &by = here.on != nullptr ? *here.on : *there.on;
    if (here.on == nullptr || here.on == there.on) {
        DIOMP_TRY(copies_.copy_runs(dir, by, there.address, here.address, walk.runs()));
        return rma::path::device;
    }
    if (allows(options_.paths, device_path_set::peer) && here.on->backend == there.on->backend) {
        auto const access = by.backend->can_access(by.id, there.on->id);
        if (access && access.value()) {
            DIOMP_TRY(copies_.copy_runs(dir, by, there.address, here.address, walk.runs()));
            return rma::path::peer_device;
        }
    }
    DIOMP_TRY(copies_.copy_runs_through_host(
        dir, here, walk.runs(), [&](std::byte *host, std::span<const rma::run> packed) {
            return copies_.copy_runs(dir, *there.on, there.address, host, packed);
        }));
    return rma::path::bounce;
}

result<rma::path> devices::box_host(rma::direction dir, world_rank rank,
                                    const memory::location &there, const device_ptr &here,
                                    const rma::box_walk &walk) {
    if (there.direct != nullptr) {
        DIOMP_TRY(copies_.copy_runs(dir, *here.on, there.direct, here.address, walk.runs()));
        return rma::path::device;
    }
    std::vector<rma::run> const runs = walk.runs();
    if (auto const between =
            location_for_network(rank, there, here, {walk.remote_extent(), walk.local_extent()});
        between && are_long_enough(runs)) {
        return transfers_.move_runs_at(dir, rank, *between, here.address, runs);
    }
    auto const move_packed = [&](std::byte *host, std::span<const rma::run> packed) -> status {
        DIOMP_TRY(transfers_.move_runs_at(dir, rank, there, host, packed));
        return {};
    };
    DIOMP_TRY(copies_.copy_runs_through_host(dir, here, runs, move_packed));
    return rma::path::bounce;
}

} // namespace diomp::offload
