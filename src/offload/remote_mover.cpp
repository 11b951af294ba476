// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/internal/remote_mover.h"

#include "offload/device_segments.h"
#include "offload/remote_memory.h"
#include "rma/blocking_transfers.h"
#include "rma/rma.h"

#include <algorithm>
#include <vector>

namespace diomp::offload {
namespace {

/// Buffer for data that passes through this process.
constexpr std::size_t chunk_bytes = std::size_t{1} << 20;

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

result<rma::path> remote_mover::move(rma::direction dir, world_rank rank, const remote_side &there,
                                     const local_side &here, std::span<const rma::run> runs) {
    remote_memory &devices = *segments_.remote();
    if (here.at.on != nullptr || there.on != nullptr ||
        (there.device_memory && !there.is_on_service())) {
        return error(OMPX_ERR_UNSUPPORTED,
                     "a transfer between a GPU and a remote device: it does not exist",
                     "use host memory in between");
    }
    if (here.remote_index && there.is_on_service()) {
        DIOMP_TRY(devices.move_between(dir, there.device_memory->address, *here.remote_index,
                                       address_of(here), runs));
    } else if (there.is_on_service()) {
        DIOMP_TRY(devices.move(dir, there.device_memory->address, here.at.address, runs));
    } else {
        DIOMP_TRY(move_to_host(dir, rank, there.location, here, runs));
    }
    return rma::path::conduit;
}

status remote_mover::move_to_host(rma::direction dir, world_rank rank,
                                  const memory::location &there, const local_side &here,
                                  std::span<const rma::run> runs) {
    remote_memory &devices = *segments_.remote();
    std::uint64_t const device = address_of(here);
    if (there.direct != nullptr) {
        return devices.move(opposite(dir), device, there.direct, reversed(runs));
    }
    std::vector<std::byte> buffer(chunk_bytes);
    for (rma::run const &each : runs) {
        for (std::size_t done = 0; done < each.nbytes; done += chunk_bytes) {
            std::size_t const nbytes = std::min(chunk_bytes, each.nbytes - done);
            rma::run const chunk{each.local + done, 0, nbytes};
            memory::location at = there;
            at.remote_address += each.remote + done;
            if (dir == rma::direction::put) {
                DIOMP_TRY(devices.move(rma::direction::get, device, buffer.data(), {&chunk, 1}));
                DIOMP_TRY(transfers_.blocking().move_at(dir, rank, at, buffer.data(), nbytes));
            } else {
                DIOMP_TRY(transfers_.blocking().move_at(dir, rank, at, buffer.data(), nbytes));
                DIOMP_TRY(devices.move(rma::direction::put, device, buffer.data(), {&chunk, 1}));
            }
        }
    }
    return {};
}

} // namespace diomp::offload
