// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Small calls whose data travels in the members' flag slots: one barrier round.
#include "coll/internal/execution.h"

namespace diomp::coll {
namespace {

using sync::operation;

bool is_from_root(operation what) { return what == operation::bcast || what == operation::scatter; }

/// Only the root receives data, or only the root sends.
bool is_rooted(const execution &call) {
    return (is_from_root(call.args.what) || call.args.what == operation::reduce ||
            call.args.what == operation::gather) &&
           !call.chosen.check_all_members;
}

/// Bytes that a member contributes.
std::size_t contributed_bytes(const execution &call) {
    return call.block_bytes() * (has_block_for_each(call.args.what) ? call.size() : 1);
}

bool is_short(const execution &call) {
    return is_rooted(call) && contributed_bytes(call) <= sizeof(std::uint64_t);
}

/// Data of a member in the last round, of `nbytes` in all.
const std::byte *arrival_data(const execution &call, std::size_t member, std::size_t nbytes) {
    if (is_short(call)) {
        return call.members.barrier().short_data_of(member);
    }
    return nbytes <= sizeof(sync::round_payload)
               ? reinterpret_cast<const std::byte *>(
                     call.members.barrier().payload_of(member).data())
               : call.members.barrier().inline_data_of(member);
}

/// What a member contributes for this member: its block, or the one of its blocks for this member.
const std::byte *block_of(const execution &call, std::size_t member) {
    const std::byte *const data =
        member == call.self() ? call.src() : arrival_data(call, member, contributed_bytes(call));
    return data + (has_block_for_each(call.args.what) ? call.self() * call.block_bytes() : 0);
}

void reduce_all(const execution &call) {
    alignas(cache_line_bytes) std::byte result[sync::node_barrier::max_inline_bytes];
    reduce_in_order(call.reduce, result, call.size(), call.args.amount,
                    [&call](std::size_t member) { return block_of(call, member); });
    std::memcpy(call.dst(), result, call.block_bytes());
}

/// Arrives with the data in the flag slot, or as inline data next to it if it is larger.
status arrive_with_data(execution &call, std::span<const std::byte> data) {
    sync::round_payload own{};
    if (data.size() <= sizeof(own)) {
        if (!data.empty()) {
            std::memcpy(own.data(), data.data(), data.size());
        }
        data = {};
    }
    return is_rooted(call) ? call.members.barrier().arrive(call.signature, own, data)
                           : call.members.barrier().arrive_and_wait(call.signature, own, data);
}

status short_arrive(execution &call, std::span<const std::byte> data) {
    if (data.empty()) {
        return call.members.barrier().arrive(call.signature, {}, {});
    }
    std::uint64_t word = 0;
    std::memcpy(&word, data.data(), data.size());
    return call.members.barrier().short_arrive(call.signature, word);
}

// In a rooted call a member waits only for the data that it needs: the root for all members, or the
// others for the root. With check_all_members all wait for all, so that each detects a mismatch.
status exchange_data(execution &call, std::span<const std::byte> data) {
    bool const short_call = is_short(call);
    DIOMP_TRY(short_call ? short_arrive(call, data) : arrive_with_data(call, data));
    if (!is_rooted(call) || call.is_root() == is_from_root(call.args.what)) {
        return {};
    }
    std::size_t const first = call.is_root() ? 0 : call.root();
    std::size_t const end = call.is_root() ? call.size() : first + 1;
    for (std::size_t member = first; member < end; ++member) {
        DIOMP_TRY(short_call ? call.members.barrier().wait_for_short(member)
                             : call.members.barrier().wait_for(member));
    }
    return {};
}

// The own block first: in place, it may lie where another block is written.
void copy_blocks_to_user(const execution &call) {
    std::size_t const nbytes = call.block_bytes();
    std::memmove(call.dst() + call.self() * nbytes, block_of(call, call.self()), nbytes);
    for (std::size_t member = 0; member < call.size(); ++member) {
        if (member != call.self()) {
            std::memcpy(call.dst() + member * nbytes, block_of(call, member), nbytes);
        }
    }
}

} // namespace

status run_inline_data(execution &call) {
    std::size_t const nbytes = call.block_bytes();
    operation const what = call.args.what;
    std::span<const std::byte> data;
    if (!is_from_root(what) || call.is_root()) {
        data = {what == operation::bcast ? call.dst() : call.src(), contributed_bytes(call)};
    }
    DIOMP_TRY(exchange_data(call, data));
    bool const has_result =
        (what != operation::reduce && what != operation::gather) || call.is_root();
    switch (what) {
    case operation::bcast:
        if (!call.is_root()) {
            std::memcpy(call.dst(), arrival_data(call, call.root(), nbytes), nbytes);
        }
        break;
    case operation::scatter:
        std::memmove(call.dst(), block_of(call, call.root()), nbytes);
        break;
    case operation::gather:
    case operation::allgather:
    case operation::alltoall:
        if (has_result) {
            copy_blocks_to_user(call);
        }
        break;
    default:
        if (has_result) {
            reduce_all(call);
        }
    }
    return {};
}

} // namespace diomp::coll
