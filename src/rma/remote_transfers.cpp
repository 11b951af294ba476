// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rma/internal/remote_transfers.h"

#include "memory/directory.h"
#include "memory/memory.h"
#include "transport/conduit.h"

#include <fmt/core.h>

namespace diomp::rma {

remote_transfers::remote_transfers(int num_ranks, memory::address_space &space,
                                   memory::segment &own, memory::directory &directory,
                                   messaging::engine &engine)
    : space_(space), directory_(directory), engine_(engine), copies_(engine, own, directory) {
    for (int rank = 0; rank < num_ranks && !has_peers_; ++rank) {
        has_peers_ = engine_.transport().direct_base(world_rank{rank}) == nullptr;
    }
}

std::string remote_transfers::describe(direction dir, world_rank peer, std::size_t nbytes) {
    return fmt::format("waiting for a {} of {} bytes {} rank {}",
                       dir == direction::put ? "put" : "get", nbytes,
                       dir == direction::put ? "to" : "from", peer.value());
}

status remote_transfers::begin(direction dir, world_rank peer, const memory::location &location,
                               void *local, std::size_t nbytes, transport::completion &count) {
    if (!location.in_segment) {
        copies_.start(dir, peer, location.remote_address, local, nbytes, count);
        return {};
    }
    transport::conduit &transport = engine_.transport();
    std::uint64_t const there = location.remote_address;
    if (!location.kinds.are_host()) [[unlikely]] {
        return dir == direction::put
                   ? transport.device()->put_device_memory(peer, there, local, nbytes,
                                                           location.kinds, count)
                   : transport.device()->get_device_memory(peer, there, local, nbytes,
                                                           location.kinds, count);
    }
    transport::rma_transport &network = *transport.rma();
    return dir == direction::put ? network.put(peer, there, local, nbytes, count)
                                 : network.get(peer, there, local, nbytes, count);
}

result<bool> remote_transfers::begin_rows(direction dir, world_rank peer,
                                          const memory::location &location, std::byte *local,
                                          const box_walk &walk, transport::completion &count) {
    if (!location.in_segment || walk.is_contiguous() || !walk.is_ascending()) {
        return false;
    }
    transport::row_transfers *const network = engine_.transport().rows();
    if (network == nullptr) {
        return false;
    }
    std::uint64_t const there = location.remote_address + walk.remote_begin();
    std::byte *const here = local + walk.local_begin();
    return dir == direction::put ? network->put_rows(peer, there, here, walk.rows(), count)
                                 : network->get_rows(peer, there, here, walk.rows(), count);
}

status remote_transfers::begin_box(direction dir, world_rank peer, const memory::location &location,
                                   std::byte *local, const box_walk &walk,
                                   transport::completion &count) {
    auto together = begin_rows(dir, peer, location, local, walk, count);
    DIOMP_TRY(together);
    status started;
    if (!together.value()) {
        walk.for_each_run(
            [&](std::size_t remote_offset, std::size_t local_offset, std::size_t nbytes) {
                if (started) {
                    started = begin(dir, peer, at_offset(location, remote_offset),
                                    local + local_offset, nbytes, count);
                }
            });
    }
    return started;
}

status remote_transfers::wait_for(direction dir, world_rank peer, const memory::location &location,
                                  std::size_t nbytes,
                                  messaging::pooled_completion &pooled_completion) {
    status waited = pooled_completion.wait(engine_, [&] { return describe(dir, peer, nbytes); });
    if (waited) {
        return {};
    }
    if (!location.in_segment) {
        copies_.cancel(pooled_completion.count());
        if (waited.failure().code() == OMPX_ERR_ADDRESS) {
            return refused(peer, location, nbytes,
                           dir == direction::get ? access::read : access::write);
        }
    }
    return waited;
}

status remote_transfers::refused(world_rank peer, const memory::location &location,
                                 std::size_t nbytes, access how) {
    directory_.invalidate(peer);
    DIOMP_TRY(space_.locate(peer, reinterpret_cast<const void *>(location.remote_address), nbytes));
    return refused_error(peer, how);
}

result<path> remote_transfers::move(direction dir, world_rank peer,
                                    const memory::location &location, void *local,
                                    std::size_t nbytes) {
    messaging::pooled_completion pooled_completion;
    DIOMP_TRY(begin(dir, peer, location, local, nbytes, pooled_completion.count()));
    DIOMP_TRY(wait_for(dir, peer, location, nbytes, pooled_completion));
    return path_of(location);
}

void remote_transfers::flush_into(world_rank peer, transport::completion &count) {
    if (status const flushing = begin_flush(peer, count); !flushing) {
        // The put itself may still use the source: the failure counts after that.
        count.begin();
        count.end(flushing.failure().code());
    }
}

status remote_transfers::flush(world_rank peer) {
    messaging::pooled_completion pooled_completion;
    DIOMP_TRY(begin_flush(peer, pooled_completion.count()));
    return pooled_completion.wait(engine_, [peer] {
        return fmt::format("waiting for puts to be complete at rank {}", peer.value());
    });
}

} // namespace diomp::rma
