// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls whose buffers lie in the window: after the meeting that told their addresses every member
// reads (and for split reductions writes) the others' buffers where they are, then all meet once
// more before anybody may change them. One copy, no stage. Members have delivered their own blocks.
#include "collective/execution.h"

#include <algorithm>

namespace diomp::collective {
namespace {

using sync::operation;

void gather(const execution &call, const std::vector<buffer_view> &buffers) {
    std::size_t const block = call.block_bytes();
    for (std::size_t step = 1; step < call.size(); ++step) {
        std::size_t const from = (call.self() + step) % call.size();
        call.deliver(call.dst() + from * block, buffers[from].src, block);
    }
}

void alltoall(const execution &call, const std::vector<buffer_view> &buffers) {
    std::size_t const block = call.block_bytes();
    for (std::size_t step = 1; step < call.size(); ++step) {
        std::size_t const from = (call.self() + step) % call.size();
        call.deliver(call.dst() + from * block, buffers[from].src + call.self() * block, block);
    }
}

void reduce(const execution &call, const std::vector<buffer_view> &buffers) {
    auto const reduce_to = [&](const std::vector<std::byte *> &destinations, std::size_t offset,
                               range part) {
        reduce_part(call.reduce, call.unit_bytes, buffers, offset, part, destinations,
                    [&call](std::byte *to, const std::byte *from, std::size_t nbytes) {
                        call.deliver(to, from, nbytes);
                    });
    };
    std::size_t const count = call.asked.amount;
    if (call.asked.what == operation::reduce_scatter) {
        reduce_to({call.dst()}, call.self() * call.block_bytes(), {0, count});
        return;
    }
    std::vector<std::byte *> destinations;
    for (std::size_t step = 0; step < call.size(); ++step) {
        std::size_t const to = (call.self() + step) % call.size();
        if (call.asked.what == operation::allreduce || to == call.root()) {
            destinations.push_back(buffers[to].dst);
        }
    }
    reduce_to(destinations, 0,
              share_of(count, call.size(), call.self(),
                       std::max<std::size_t>(1, cache_line_bytes / call.unit_bytes)));
}

void bcast(const execution &call, const std::vector<buffer_view> &buffers) {
    const std::byte *const source = buffers[call.root()].dst;
    if (shares_bcast(call.shared_from, call.block_bytes(), buffers)) {
        write_to_all(call.chosen, call.block_bytes(),
                     share_of(call.block_bytes(), call.size(), call.self(), bcast_grain_bytes),
                     source, bcast_destinations(buffers, call.root()));
    } else if (!call.is_root()) {
        call.deliver(call.dst(), source, call.block_bytes());
    }
}

} // namespace

bool shares_bcast(std::size_t from_bytes, std::size_t nbytes,
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

void write_to_all(const options &chosen, std::size_t nbytes, range part, const std::byte *source,
                  std::span<std::byte *const> destinations) {
    std::vector<std::byte *> places(destinations.begin(), destinations.end());
    for (std::byte *&place : places) {
        place += part.begin;
    }
    rma::copy_to_all(places, source + part.begin, part.count,
                     nbytes >= chosen.stream_threshold_bytes);
}

buffer_view view_of(const options &chosen, const void *src, const void *dst) {
    auto const shared = [&chosen](const void *buffer) {
        return chosen.in_window(buffer) ? static_cast<std::byte *>(const_cast<void *>(buffer))
                                        : nullptr;
    };
    return {shared(src), shared(dst)};
}

status exchange_buffers(execution &call, std::vector<buffer_view> &buffers) {
    buffer_view const own = view_of(call.chosen, call.src(), call.dst());
    DIOMP_TRY(call.members.meet(call.signature, {reinterpret_cast<std::uint64_t>(own.src),
                                                 reinterpret_cast<std::uint64_t>(own.dst),
                                                 call.chosen.shared_bcast_from_bytes}));
    buffers.resize(call.size());
    call.shared_from = 0;
    for (std::size_t member = 0; member < call.size(); ++member) {
        const sync::meeting_payload &told = call.members.payload_of(member);
        buffers[member] = {reinterpret_cast<std::byte *>(told[0]),
                           reinterpret_cast<std::byte *>(told[1])};
        call.shared_from = std::max<std::size_t>(call.shared_from, told[2]);
    }
    return {};
}

bool allows_direct(const request &asked, const buffer_view &buffers, std::size_t member) {
    auto const root = static_cast<std::size_t>(asked.root);
    switch (asked.what) {
    case operation::bcast:
        return member != root || buffers.dst != nullptr;
    case operation::scatter:
        return member != root || buffers.src != nullptr;
    case operation::gather:
    case operation::allgather:
        return buffers.src != nullptr;
    case operation::alltoall:
    case operation::reduce_scatter:
        // In place a fast member would overwrite what a slow one still has to read.
        return buffers.src != nullptr && buffers.src != buffers.dst;
    case operation::reduce:
        return buffers.src != nullptr && (member != root || buffers.dst != nullptr);
    case operation::allreduce:
        return buffers.src != nullptr && buffers.dst != nullptr;
    default:
        return false;
    }
}

std::size_t count_direct(const execution &call, const std::vector<buffer_view> &buffers) {
    bool const one_source =
        call.asked.what == operation::bcast || call.asked.what == operation::scatter;
    if (one_source) {
        return allows_direct(call.asked, buffers[call.root()], call.root()) ? call.size() : 0;
    }
    std::size_t count = 0;
    for (std::size_t member = 0; member < call.size(); ++member) {
        count += allows_direct(call.asked, buffers[member], member) ? 1 : 0;
    }
    return count;
}

status run_direct(execution &call, const std::vector<buffer_view> &buffers) {
    switch (call.asked.what) {
    case operation::bcast:
        bcast(call, buffers);
        break;
    case operation::scatter:
        if (!call.is_root()) {
            call.deliver(call.dst(), buffers[call.root()].src + call.self() * call.block_bytes(),
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
    return call.members.meet(call.signature);
}

} // namespace diomp::collective
