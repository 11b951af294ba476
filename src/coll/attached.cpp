// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The algorithms of zero_copy.cpp for private buffers, which the members access by cross-memory
// attach: a member's share of the work is read from and written to the others' memory. Which kind
// of buffer a member has may differ.
#include "coll/internal/attached.h"

#include "base/cpu.h"
#include "coll/internal/select.h"
#include "group/attached_memory.h"
#include "group/protocol_log.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>

namespace diomp::coll {
namespace {

using sync::operation;

/// Copies between the caller's and other members' buffers.
class peer_buffers {
public:
    peer_buffers(const execution &call, const std::vector<buffer_view> &buffers)
        : call_(call), buffers_(buffers) {}

    [[nodiscard]] const buffer_view &operator[](std::size_t member) const {
        return buffers_[member];
    }
    /// Whether the caller can load and store the memory.
    [[nodiscard]] bool is_direct(std::size_t member, const std::byte *at) const {
        return member == call_.self() || call_.chosen.in_arena(at);
    }
    status read(std::size_t member, const std::byte *from, std::byte *to,
                std::size_t nbytes) const {
        if (is_direct(member, from) || nbytes == 0) {
            call_.copy_to_user(to, from, nbytes);
            return {};
        }
        return call_.members.attached().read(member, from, to, nbytes);
    }
    status write(std::size_t member, std::byte *to, const std::byte *from,
                 std::size_t nbytes) const {
        if (is_direct(member, to) || nbytes == 0) {
            call_.copy_to_user(to, from, nbytes);
            return {};
        }
        return call_.members.attached().write(member, to, from, nbytes);
    }

private:
    const execution &call_;
    const std::vector<buffer_view> &buffers_;
};

// Each member copies a partition to all others. Where partitions are small, the members only read:
// a system call takes as long as a copy of some KiB.
status bcast(const execution &call, const peer_buffers &peers) {
    constexpr std::size_t min_partition_bytes = std::size_t{16} << 10;
    std::size_t const block = call.block_bytes();
    const std::byte *const source = peers[call.root()].dst;
    if (block / call.size() < min_partition_bytes) {
        return call.is_root() ? status{} : peers.read(call.root(), source, call.dst(), block);
    }
    range const own = partition_range(block, call.size(), call.self(), bcast_alignment_bytes);
    if (!call.is_root()) {
        DIOMP_TRY(peers.read(call.root(), source + own.begin, call.dst() + own.begin, own.count));
    }
    for (std::size_t step = 1; step < call.size(); ++step) {
        std::size_t const to = (call.self() + step) % call.size();
        if (to != call.root()) {
            DIOMP_TRY(
                peers.write(to, peers[to].dst + own.begin, call.dst() + own.begin, own.count));
        }
    }
    return {};
}

/// Combines elements of all operands in chunks that stay in the caches.
class attached_reduction {
public:
    attached_reduction(const execution &call, const peer_buffers &peers)
        : call_(call), peers_(peers), step_(elements_per_chunk(call)),
          scratch_(std::make_unique_for_overwrite<std::byte[]>((call.size() + 1) * step_bytes())),
          operands_(call.size()) {}

    /// Elements [begin, begin + count) after `offset` bytes of each src, to the destinations' dst.
    status run(std::size_t offset, range elements, std::span<const std::size_t> destinations) {
        for (std::size_t done = 0; done < elements.count; done += step_) {
            range const chunk{elements.begin + done, std::min(step_, elements.count - done)};
            DIOMP_TRY(run_chunk(offset, chunk, destinations));
        }
        return {};
    }

private:
    /// A system call has its costs, too, so chunks are as large as the core's own cache allows: a
    /// quarter of it holds all operands, the rest the results and what the next ones displace.
    static std::size_t elements_per_chunk(const execution &call) {
        constexpr std::size_t least_bytes = std::size_t{16} << 10;
        constexpr std::size_t max_bytes = std::size_t{256} << 10;
        static std::size_t const total_bytes = level2_cache_bytes() / 4;
        std::size_t const chunk = std::clamp(total_bytes / call.size(), least_bytes, max_bytes);
        return std::max<std::size_t>(1, chunk / call.unit_bytes);
    }
    [[nodiscard]] std::size_t step_bytes() const { return step_ * call_.unit_bytes; }

    status run_chunk(std::size_t offset, range chunk, std::span<const std::size_t> destinations) {
        std::size_t const begin = chunk.begin * call_.unit_bytes;
        std::size_t const nbytes = chunk.count * call_.unit_bytes;
        for (std::size_t step = 0; step < call_.size(); ++step) {
            std::size_t const from = (call_.self() + step) % call_.size();
            const std::byte *const operand = peers_[from].src + offset + begin;
            operands_[from] = operand;
            if (!peers_.is_direct(from, operand)) {
                std::byte *const copy = scratch_.get() + from * step_bytes();
                DIOMP_TRY(peers_.read(from, operand, copy, nbytes));
                operands_[from] = copy;
            }
        }
        bool const has_result = std::ranges::find(destinations, call_.self()) != destinations.end();
        std::byte *const apart = scratch_.get() + call_.size() * step_bytes();
        std::byte *out = has_result ? call_.dst() + begin : apart;
        if (out == operands_[call_.self()]) { // in place, it is an operand
            out = apart;
        }
        reduce_in_order(call_.reduce, out, call_.size(), chunk.count,
                        [this](std::size_t member) { return operands_[member]; });
        for (std::size_t const to : destinations) {
            DIOMP_TRY(peers_.write(to, peers_[to].dst + begin, out, nbytes));
        }
        return {};
    }

    const execution &call_;
    const peer_buffers &peers_;
    std::size_t step_;
    std::unique_ptr<std::byte[]> scratch_; ///< [member, then the result][step_]
    std::vector<const std::byte *> operands_;
};

status reduce(const execution &call, const peer_buffers &peers) {
    attached_reduction reduction(call, peers);
    std::size_t const self = call.self();
    if (call.args.what == operation::reduce_scatter) {
        return reduction.run(self * call.block_bytes(), {0, call.args.amount}, {&self, 1});
    }
    std::vector<std::size_t> destinations;
    for (std::size_t step = 0; step < call.size(); ++step) {
        std::size_t const to = (self + step) % call.size();
        if (call.args.what == operation::allreduce || to == call.root()) {
            destinations.push_back(to);
        }
    }
    return reduction.run(
        0,
        partition_range(call.args.amount, call.size(), self,
                        std::max<std::size_t>(1, cache_line_bytes / call.unit_bytes)),
        destinations);
}

/// A block from each other member: its only one, or the one that is for the caller.
status read_blocks(const execution &call, const peer_buffers &peers, bool one_for_each) {
    std::size_t const block = call.block_bytes();
    for (std::size_t step = 1; step < call.size(); ++step) {
        std::size_t const from = (call.self() + step) % call.size();
        DIOMP_TRY(peers.read(from, peers[from].src + (one_for_each ? call.self() * block : 0),
                             call.dst() + from * block, block));
    }
    return {};
}

status move(const execution &call, const peer_buffers &peers) {
    std::size_t const own_offset = call.self() * call.block_bytes();
    switch (call.args.what) {
    case operation::bcast:
        return bcast(call, peers);
    case operation::gather:
        return call.is_root() ? status{}
                              : peers.write(call.root(), peers[call.root()].dst + own_offset,
                                            call.src(), call.block_bytes());
    case operation::scatter:
        return call.is_root() ? status{}
                              : peers.read(call.root(), peers[call.root()].src + own_offset,
                                           call.dst(), call.block_bytes());
    case operation::allgather:
        return read_blocks(call, peers, false);
    case operation::alltoall:
        return read_blocks(call, peers, true);
    default:
        return reduce(call, peers);
    }
}

/// Whether the other members may access this member's buffers. In place, a fast member would
/// overwrite what a slow one still has to read.
bool exports_buffers(const execution &call) {
    operation const what = call.args.what;
    if ((what == operation::alltoall || what == operation::reduce_scatter) &&
        call.src() == call.dst()) {
        return false;
    }
    endpoint_buffers const own{call.args.dst, call.args.src, nullptr};
    buffer_use const use = use_of(call.args, own, call.size(), call.self());
    auto const exports = [&call](const void *buffer, std::size_t nbytes) {
        return call.chosen.in_arena(buffer) || call.members.attached().can_export(buffer, nbytes);
    };
    return exports(call.src(), use.src_bytes) && exports(call.dst(), use.dst_bytes);
}

} // namespace

attach_offer make_attach_offer(execution &call) {
    auto &attached = call.members.attached();
    attach_offer offer;
    if (!call.members.can_attach()) {
        return offer;
    }
    call.attach.key = group::attached_memory::key_of(static_cast<std::uint32_t>(call.args.what),
                                                     call.block_bytes());
    group::agreed_autotuner const &tuner = attached.tuner(call.attach.key);
    offer.own_ns = tuner.own_ns();
    bool const prefers = tuner.choice() == 1;
    offer.flags = attach_offer::is_able | (prefers ? attach_offer::is_preferred : 0);
    if (tuner.is_measuring()) {
        call.attach.begin = std::chrono::steady_clock::now();
    }
    if (prefers && exports_buffers(call)) {
        offer.flags |= attach_offer::is_ready;
    }
    return offer;
}

bool agree_on_attach(execution &call, std::span<const attach_offer> offers) {
    auto &attached = call.members.attached();
    auto const have = [&](std::uint64_t flag) {
        return static_cast<std::size_t>(std::ranges::count_if(
            offers, [flag](const attach_offer &each) { return each.has(flag); }));
    };
    if (have(attach_offer::is_able) < offers.size()) {
        attached.forbid();
        call.attach.begin.reset();
        return false;
    }
    std::size_t const num_preferring = have(attach_offer::is_preferred);
    if (num_preferring != 0 && num_preferring != offers.size()) {
        attached.reset_tuner(call.attach.key);
        call.attach.begin.reset();
        return false;
    }
    std::uint64_t const largest = std::ranges::max(offers, {}, &attach_offer::own_ns).own_ns;
    bool const all_ready = have(attach_offer::is_ready) == offers.size();
    bool const follows_choice = num_preferring == 0 || all_ready;
    attached.tuner(call.attach.key).note_all(largest, follows_choice);
    if (!follows_choice) {
        call.attach.begin.reset();
    }
    return all_ready;
}

void note_attach_time(execution &call) {
    if (call.attach.begin) {
        std::chrono::nanoseconds const taken =
            std::chrono::steady_clock::now() - *call.attach.begin;
        call.members.attached()
            .tuner(call.attach.key)
            .note_own(static_cast<std::uint64_t>(std::max<std::int64_t>(1, taken.count())));
    }
}

status run_attached(execution &call, const std::vector<buffer_view> &buffers) {
    group::log_protocol("    cross-memory attach, {} bytes per block", call.block_bytes());
    status own = move(call, peer_buffers(call, buffers));
    std::uint64_t const own_code = own ? 0 : static_cast<std::uint64_t>(own.failure().code());
    DIOMP_TRY(call.members.barrier().arrive_and_wait(call.signature, {own_code}));
    DIOMP_TRY(own);
    for (std::size_t member = 0; member < call.size(); ++member) {
        if (std::uint64_t const code = call.members.barrier().payload_of(member)[0]; code != 0) {
            return error(static_cast<ompx_status>(static_cast<int>(code)),
                         fmt::format("rank {} could not access the buffers of the other members",
                                     call.members.members()[member].value()),
                         "its message has the cause; DIOMP_CMA=off uses shared memory instead");
        }
    }
    return {};
}

} // namespace diomp::coll
