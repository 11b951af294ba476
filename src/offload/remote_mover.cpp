// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/internal/remote_mover.h"

#include "offload/device_segment.h"
#include "offload/device_segments.h"
#include "offload/internal/chunks.h"
#include "offload/remote_memory.h"
#include "offload/session_transfer.h"

#include <vector>

namespace diomp::offload {
namespace {

std::uint64_t address_of(const local_side &side) {
    return reinterpret_cast<std::uintptr_t>(side.at.address);
}

rma::direction opposite(rma::direction dir) {
    return dir == rma::direction::put ? rma::direction::get : rma::direction::put;
}

/// The runs as the other side sees them.
std::vector<rma::run> reversed(std::span<const rma::run> runs) {
    std::vector<rma::run> made;
    made.reserve(runs.size());
    for (rma::run const &each : runs) {
        made.push_back({each.local, each.remote, each.nbytes});
    }
    return made;
}

} // namespace

result<rma::path> remote_mover::move(rma::direction dir, const remote_side &there,
                                     const local_side &here, std::span<const rma::run> runs,
                                     host_function move_host, transfer_start *start) {
    remote_memory &devices = *segments_.remote();
    if (!there.is_on_service()) {
        if (there.is_host() && there.location.direct != nullptr) {
            DIOMP_TRY(devices.move(opposite(dir), address_of(here), there.location.direct,
                                   reversed(runs), start));
        } else {
            DIOMP_TRY(move_through_process(dir, here, runs, move_host));
        }
    } else if (here.remote_index) {
        DIOMP_TRY(devices.move_between(dir, there.device_memory->address, *here.remote_index,
                                       address_of(here), runs, start));
    } else if (here.at.on != nullptr) {
        DIOMP_TRY(move_own_gpu(dir, there.device_memory->address, here.at, runs));
    } else {
        DIOMP_TRY(devices.move(dir, there.device_memory->address, here.at.address, runs, start));
    }
    return rma::path::conduit;
}

const std::byte *remote_mover::own_memory_of(const remote_side &there) const {
    if (!there.is_on_service()) {
        return nullptr;
    }
    auto const *const at = reinterpret_cast<const std::byte *>(there.device_memory->address);
    return segments_.table().containing(at) != nullptr ? at : nullptr;
}

const device_segment *remote_mover::segment_of_sessions(const remote_side &there,
                                                        const device_ptr &here) const {
    if (here.on == nullptr || here.on->made_by != vendor::service || !there.device_memory ||
        !there.device_memory->offset || there.device_memory->session_index != here.on->id.value()) {
        return nullptr;
    }
    device_segment const *const own = segments_.table().containing(here.address);
    return own != nullptr && session_index_of(*own, segments_.remote()) ? own : nullptr;
}

result<rma::path> remote_mover::move_by_sessions(rma::direction dir, world_rank rank,
                                                 const remote_side &there,
                                                 const device_segment &own, const device_ptr &here,
                                                 std::span<const rma::run> runs) {
    remote_device_memory const &at = *there.device_memory;
    session_transfer const call{dir,
                                rank.value(),
                                reinterpret_cast<std::uintptr_t>(own.base()) + *at.offset,
                                reinterpret_cast<std::uintptr_t>(here.address),
                                {runs.begin(), runs.end()}};
    DIOMP_TRY(segments_.remote()->run_call(*at.session_index, encode(call)));
    return rma::path::conduit;
}

/// Between a GPU of this process and a remote processor.
status remote_mover::move_own_gpu(rma::direction dir, std::uint64_t there, const device_ptr &here,
                                  std::span<const rma::run> runs) {
    remote_memory &devices = *segments_.remote();
    auto const move_runs = [&](std::byte *host, std::span<const rma::run> packed) {
        return devices.move(dir, there, host, packed, nullptr);
    };
    if (runs.size() > 1) {
        return copies_.copy_runs_through_host(dir, here, runs, move_runs);
    }
    rma::run const &all = runs.front();
    auto const move_chunk = [&](std::byte *host, std::size_t done, std::size_t nbytes) {
        rma::run const chunk{all.remote + done, 0, nbytes};
        return move_runs(host, {&chunk, 1});
    };
    return dir == rma::direction::put
               ? copies_.copy_out(*here.on, here.address + all.local, all.nbytes, move_chunk)
               : copies_.copy_in(*here.on, here.address + all.local, all.nbytes, move_chunk);
}

/// Between a remote processor of this rank and what `move_host` reaches.
status remote_mover::move_through_process(rma::direction dir, const local_side &here,
                                          std::span<const rma::run> runs, host_function move_host) {
    remote_memory &devices = *segments_.remote();
    std::vector<std::byte> buffer(chunk_bytes);
    for (packed_runs const &batch : pack(runs, 0)) {
        auto const on_device = reversed(batch.to_local(0));
        auto const there = batch.to_remote(0);
        if (dir == rma::direction::put) {
            DIOMP_TRY(devices.move(rma::direction::get, address_of(here), buffer.data(), on_device,
                                   nullptr));
            DIOMP_TRY(move_host(buffer.data(), there));
        } else {
            DIOMP_TRY(move_host(buffer.data(), there));
            DIOMP_TRY(devices.move(rma::direction::put, address_of(here), buffer.data(), on_device,
                                   nullptr));
        }
    }
    return {};
}

} // namespace diomp::offload
