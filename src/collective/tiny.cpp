// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls whose data travels with the members' lines: one meeting does it all.
#include "collective/execution.h"

namespace diomp::collective {
namespace {

using sync::operation;

bool is_from_root(operation what) { return what == operation::bcast || what == operation::scatter; }

/// Only a root needs data, or only a root has some.
bool is_rooted(const execution &call) {
    return (is_from_root(call.asked.what) || call.asked.what == operation::reduce ||
            call.asked.what == operation::gather) &&
           !call.chosen.check_all_members;
}

/// What a member brings of its own.
std::size_t brought_bytes(const execution &call) {
    return call.asked.what == operation::scatter ? call.block_bytes() * call.size()
                                                 : call.block_bytes();
}

bool is_brief(const execution &call) {
    return is_rooted(call) && brought_bytes(call) <= sizeof(std::uint64_t);
}

/// What a member brought to the last meeting.
const std::byte *brought_by(const execution &call, std::size_t member, std::size_t nbytes) {
    if (is_brief(call)) {
        return call.members.brief_of(member);
    }
    return nbytes <= sizeof(sync::meeting_payload)
               ? reinterpret_cast<const std::byte *>(call.members.payload_of(member).data())
               : call.members.wide_of(member);
}

/// The same of a call in which every member brings its block.
const std::byte *block_of(const execution &call, std::size_t member) {
    return member == call.self() ? call.src() : brought_by(call, member, call.block_bytes());
}

void reduce_all(const execution &call) {
    alignas(cache_line_bytes) std::byte result[sync::rendezvous::wide_bytes];
    reduce_in_order(call.reduce, result, call.size(), call.asked.amount,
                    [&call](std::size_t member) { return block_of(call, member); });
    std::memcpy(call.dst(), result, call.block_bytes());
}

/// With the member's own line, and what is wide beside it.
status meet_by_line(execution &call, std::span<const std::byte> data) {
    sync::meeting_payload own{};
    if (data.size() <= sizeof(own)) {
        if (!data.empty()) {
            std::memcpy(own.data(), data.data(), data.size());
        }
        data = {};
    }
    return is_rooted(call) ? call.members.post(call.signature, own, data)
                           : call.members.meet(call.signature, own, data);
}

status post_brief(execution &call, std::span<const std::byte> data) {
    if (data.empty()) {
        return call.members.post(call.signature, {}, {});
    }
    std::uint64_t word = 0;
    std::memcpy(&word, data.data(), data.size());
    return call.members.post_brief(call.signature, word);
}

// Who has a root waits for no more than it needs: the root for all, or the others for the root.
// With checks everybody waits for everybody, so that everybody learns of a mismatch.
status meet_loosely(execution &call, std::span<const std::byte> data) {
    bool const brief = is_brief(call);
    DIOMP_TRY(brief ? post_brief(call, data) : meet_by_line(call, data));
    if (!is_rooted(call) || call.is_root() == is_from_root(call.asked.what)) {
        return {};
    }
    std::size_t const first = call.is_root() ? 0 : call.root();
    std::size_t const end = call.is_root() ? call.size() : first + 1;
    for (std::size_t member = first; member < end; ++member) {
        DIOMP_TRY(brief ? call.members.await_brief(member) : call.members.await(member));
    }
    return {};
}

// The own block first: in place, it may lie where another one goes.
void deliver_blocks(const execution &call) {
    std::size_t const nbytes = call.block_bytes();
    std::memmove(call.dst() + call.self() * nbytes, call.src(), nbytes);
    for (std::size_t member = 0; member < call.size(); ++member) {
        if (member != call.self()) {
            std::memcpy(call.dst() + member * nbytes, brought_by(call, member, nbytes), nbytes);
        }
    }
}

const std::byte *blocks_of_root(const execution &call) {
    return call.is_root() ? call.src()
                          : brought_by(call, call.root(), call.block_bytes() * call.size());
}

} // namespace

status run_tiny(execution &call) {
    std::size_t const nbytes = call.block_bytes();
    operation const what = call.asked.what;
    std::span<const std::byte> data;
    if (what != operation::bcast && what != operation::scatter) {
        data = {call.src(), nbytes};
    } else if (call.is_root()) {
        data = what == operation::scatter ? std::span(call.src(), nbytes * call.size())
                                          : std::span<const std::byte>(call.dst(), nbytes);
    }
    DIOMP_TRY(meet_loosely(call, data));
    bool const result_here = what == operation::allreduce || what == operation::allgather ||
                             what == operation::scatter || call.is_root();
    switch (what) {
    case operation::bcast:
        if (!call.is_root()) {
            std::memcpy(call.dst(), brought_by(call, call.root(), nbytes), nbytes);
        }
        break;
    case operation::scatter:
        std::memmove(call.dst(), blocks_of_root(call) + call.self() * nbytes, nbytes);
        break;
    case operation::gather:
    case operation::allgather:
        if (result_here) {
            deliver_blocks(call);
        }
        break;
    default:
        if (result_here) {
            reduce_all(call);
        }
    }
    return {};
}

} // namespace diomp::collective
