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

// Reduces elements [part.begin, ...) of the operands that start at `offset` bytes of each member's
// src, and stores them at the same elements of every destination.
void reduce_part(const execution &call, const std::vector<buffer_view> &buffers, std::size_t offset,
                 range part, const std::vector<std::byte *> &destinations) {
    std::size_t const unit = call.unit_bytes;
    piece_buffer const aside(unit); // since in place a destination is an operand
    for (std::size_t first = part.begin; first < part.begin + part.count;
         first += aside.elements()) {
        std::size_t const piece = std::min(aside.elements(), part.begin + part.count - first);
        reduce_in_order(call.reduce, aside.data(), call.size(), piece, [&](std::size_t member) {
            return buffers[member].src + offset + first * unit;
        });
        for (std::byte *const to : destinations) {
            call.deliver(to + first * unit, aside.data(), piece * unit);
        }
    }
}

void reduce(const execution &call, const std::vector<buffer_view> &buffers) {
    std::size_t const count = call.asked.amount;
    range part{0, count};
    std::vector<std::byte *> destinations;
    if (call.asked.what == operation::reduce_scatter) {
        destinations = {call.dst()};
        reduce_part(call, buffers, call.self() * call.block_bytes(), part, destinations);
        return;
    }
    part = share_of(count, call.size(), call.self(),
                    std::max<std::size_t>(1, cache_line_bytes / call.unit_bytes));
    for (std::size_t step = 0; step < call.size(); ++step) {
        std::size_t const to = (call.self() + step) % call.size();
        if (call.asked.what == operation::allreduce || to == call.root()) {
            destinations.push_back(buffers[to].dst);
        }
    }
    reduce_part(call, buffers, 0, part, destinations);
}

} // namespace

buffer_view own_buffers(const execution &call) {
    auto const shared = [&call](const void *buffer) {
        auto const address = reinterpret_cast<std::uintptr_t>(buffer);
        bool const inside = address - call.chosen.window_base < call.chosen.window_span;
        return inside ? reinterpret_cast<std::byte *>(address) : nullptr;
    };
    return {shared(call.asked.src), shared(call.asked.dst), call.asked.dst == call.asked.src};
}

status exchange_buffers(execution &call, std::vector<buffer_view> &buffers) {
    buffer_view const own = own_buffers(call);
    DIOMP_TRY(call.members.meet(call.signature, {reinterpret_cast<std::uint64_t>(own.src),
                                                 reinterpret_cast<std::uint64_t>(own.dst),
                                                 own.in_place ? 1U : 0U}));
    buffers.resize(call.size());
    for (std::size_t member = 0; member < call.size(); ++member) {
        const sync::meeting_payload &told = call.members.payload_of(member);
        buffers[member] = {reinterpret_cast<std::byte *>(told[0]),
                           reinterpret_cast<std::byte *>(told[1]), told[2] != 0};
    }
    return {};
}

bool allows_direct(const execution &call, const buffer_view &buffers, std::size_t member) {
    switch (call.asked.what) {
    case operation::bcast:
        return member != call.root() || buffers.dst != nullptr;
    case operation::scatter:
        return member != call.root() || buffers.src != nullptr;
    case operation::gather:
    case operation::allgather:
        return buffers.src != nullptr;
    case operation::alltoall:
    case operation::reduce_scatter:
        // In place a fast member would overwrite what a slow one still has to read.
        return buffers.src != nullptr && !buffers.in_place;
    case operation::reduce:
        return buffers.src != nullptr && (member != call.root() || buffers.dst != nullptr);
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
        return allows_direct(call, buffers[call.root()], call.root()) ? call.size() : 0;
    }
    std::size_t count = 0;
    for (std::size_t member = 0; member < call.size(); ++member) {
        count += allows_direct(call, buffers[member], member) ? 1 : 0;
    }
    return count;
}

status run_direct(execution &call, const std::vector<buffer_view> &buffers) {
    switch (call.asked.what) {
    case operation::bcast:
        if (!call.is_root()) {
            call.deliver(call.dst(), buffers[call.root()].dst, call.block_bytes());
        }
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
