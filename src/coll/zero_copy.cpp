// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Zero-copy algorithms for buffers in the arena. After the round that publishes the addresses each
// member reads (and for partitioned reductions writes) the other members' buffers directly. A
// second round follows before any buffer may change. One copy, no stage buffer. Members have copied
// their own blocks before.
#include "coll/internal/execution.h"
#include "group/protocol_log.h"

#include <algorithm>

namespace diomp::coll {
namespace {

using sync::operation;

void gather(const execution &call, const std::vector<buffer_view> &buffers) {
    std::size_t const block = call.block_bytes();
    for (std::size_t step = 1; step < call.size(); ++step) {
        std::size_t const from = (call.self() + step) % call.size();
        call.copy_to_user(call.dst() + from * block, buffers[from].src, block);
    }
}

void alltoall(const execution &call, const std::vector<buffer_view> &buffers) {
    std::size_t const block = call.block_bytes();
    for (std::size_t step = 1; step < call.size(); ++step) {
        std::size_t const from = (call.self() + step) % call.size();
        call.copy_to_user(call.dst() + from * block, buffers[from].src + call.self() * block,
                          block);
    }
}

void reduce(const execution &call, const std::vector<buffer_view> &buffers) {
    auto const reduce_to = [&](const std::vector<std::byte *> &destinations, std::size_t offset,
                               range partition) {
        reduce_partition(call.reduce, call.unit_bytes, buffers, offset, partition, destinations,
                         [&call](std::byte *to, const std::byte *from, std::size_t nbytes) {
                             call.copy_to_user(to, from, nbytes);
                         });
    };
    std::size_t const count = call.args.amount;
    if (call.args.what == operation::reduce_scatter) {
        reduce_to({call.dst()}, call.self() * call.block_bytes(), {0, count});
        return;
    }
    std::vector<std::byte *> destinations;
    for (std::size_t step = 0; step < call.size(); ++step) {
        std::size_t const to = (call.self() + step) % call.size();
        if (call.args.what == operation::allreduce || to == call.root()) {
            destinations.push_back(buffers[to].dst);
        }
    }
    reduce_to(destinations, 0,
              partition_range(count, call.size(), call.self(),
                              std::max<std::size_t>(1, cache_line_bytes / call.unit_bytes)));
}

void bcast(const execution &call, const std::vector<buffer_view> &buffers) {
    const std::byte *const source = buffers[call.root()].dst;
    if (uses_shared_bcast(call.shared_bcast_min, call.block_bytes(), buffers)) {
        write_to_all(
            call.chosen, call.block_bytes(),
            partition_range(call.block_bytes(), call.size(), call.self(), bcast_alignment_bytes),
            source, bcast_destinations(buffers, call.root()));
    } else if (!call.is_root()) {
        call.copy_to_user(call.dst(), source, call.block_bytes());
    }
}

} // namespace

bool uses_shared_bcast(std::size_t from_bytes, std::size_t nbytes,
                       const std::vector<buffer_view> &buffers) {
    return nbytes >= from_bytes && std::ranges::all_of(buffers, [](const buffer_view &each) {
               return each.dst != nullptr;
           });
}

std::vector<std::byte *> bcast_destinations(const std::vector<buffer_view> &buffers,
                                            std::size_t root) {
    std::vector<std::byte *> destinations;
    for (buffer_view const &each : buffers) {
        if (each.dst != buffers[root].dst) {
            destinations.push_back(each.dst);
        }
    }
    return destinations;
}

void write_to_all(const options &chosen, std::size_t nbytes, range partition,
                  const std::byte *source, std::span<std::byte *const> destinations) {
    std::vector<std::byte *> targets(destinations.begin(), destinations.end());
    for (std::byte *&target : targets) {
        target += partition.begin;
    }
    rma::copy_to_all(targets, source + partition.begin, partition.count,
                     nbytes >= chosen.stream_threshold_bytes);
}

buffer_view view_of(const options &chosen, const void *src, const void *dst) {
    auto const shared = [&chosen](const void *buffer) {
        return chosen.in_arena(buffer) ? static_cast<std::byte *>(const_cast<void *>(buffer))
                                       : nullptr;
    };
    return {shared(src), shared(dst)};
}

status exchange_buffers(execution &call, const attach_offer &own, published_buffers &all) {
    DIOMP_TRY(call.members.barrier().arrive_and_wait(
        call.signature,
        {reinterpret_cast<std::uint64_t>(call.src()), reinterpret_cast<std::uint64_t>(call.dst()),
         call.chosen.shared_bcast_min_bytes, own.own_ns, own.flags}));
    all.in_arena.resize(call.size());
    all.all.resize(call.size());
    all.offers.resize(call.size());
    call.shared_bcast_min = 0;
    for (std::size_t member = 0; member < call.size(); ++member) {
        const sync::round_payload &payload = call.members.barrier().payload_of(member);
        buffer_view const each{reinterpret_cast<std::byte *>(payload[0]),
                               reinterpret_cast<std::byte *>(payload[1])};
        all.all[member] = each;
        all.in_arena[member] = view_of(call.chosen, each.src, each.dst);
        all.offers[member] = {payload[3], payload[4]};
        call.shared_bcast_min = std::max<std::size_t>(call.shared_bcast_min, payload[2]);
    }
    return {};
}

bool allows_zero_copy(const request &args, const buffer_view &buffers, std::size_t member) {
    auto const root = static_cast<std::size_t>(args.root);
    switch (args.what) {
    case operation::bcast:
        return member != root || buffers.dst != nullptr;
    case operation::scatter:
        return member != root || buffers.src != nullptr;
    case operation::gather:
    case operation::allgather:
        return buffers.src != nullptr;
    case operation::alltoall:
    case operation::reduce_scatter:
        // In place a fast member would overwrite data that a slow one still has to read.
        return buffers.src != nullptr && buffers.src != buffers.dst;
    case operation::reduce:
        return buffers.src != nullptr && (member != root || buffers.dst != nullptr);
    case operation::allreduce:
        return buffers.src != nullptr && buffers.dst != nullptr;
    default:
        return false;
    }
}

std::size_t count_zero_copy(const execution &call, const std::vector<buffer_view> &buffers) {
    bool const one_source =
        call.args.what == operation::bcast || call.args.what == operation::scatter;
    if (one_source) {
        return allows_zero_copy(call.args, buffers[call.root()], call.root()) ? call.size() : 0;
    }
    std::size_t count = 0;
    for (std::size_t member = 0; member < call.size(); ++member) {
        count += allows_zero_copy(call.args, buffers[member], member) ? 1 : 0;
    }
    return count;
}

status run_zero_copy(execution &call, const std::vector<buffer_view> &buffers) {
    group::log_protocol("    zero copy, {} bytes per block", call.block_bytes());
    switch (call.args.what) {
    case operation::bcast:
        bcast(call, buffers);
        break;
    case operation::scatter:
        if (!call.is_root()) {
            call.copy_to_user(call.dst(),
                              buffers[call.root()].src + call.self() * call.block_bytes(),
                              call.block_bytes());
        }
        break;
    case operation::gather:
        if (call.is_root()) {
            gather(call, buffers);
        }
        break;
    case operation::allgather:
        gather(call, buffers);
        break;
    case operation::alltoall:
        alltoall(call, buffers);
        break;
    default:
        reduce(call, buffers);
    }
    return call.members.barrier().arrive_and_wait(call.signature);
}

} // namespace diomp::coll
