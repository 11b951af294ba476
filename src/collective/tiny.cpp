// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls whose data travels with the members' lines: one meeting does it all.
#include "collective/execution.h"

namespace diomp::collective {
namespace {

using sync::operation;

/// What a member brought to the last meeting.
const std::byte *brought_by(const execution &call, std::size_t member, std::size_t nbytes) {
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

// Who has a root waits for no more than it needs: the root for all, or the others for the root.
// With checks everybody waits for everybody, so that everybody learns of a mismatch.
status meet_loosely(execution &call, std::span<const std::byte> data) {
    sync::meeting_payload own{};
    if (data.size() <= sizeof(own)) {
        if (!data.empty()) {
            std::memcpy(own.data(), data.data(), data.size());
        }
        data = {};
    }
    operation const what = call.asked.what;
    bool const rooted = what == operation::bcast || what == operation::reduce ||
                        what == operation::gather || what == operation::scatter;
    if (!rooted || call.chosen.check_all_members) {
        return call.members.meet(call.signature, own, data);
    }
    DIOMP_TRY(call.members.post(call.signature, own, data));
    bool const from_root = what == operation::bcast || what == operation::scatter;
    if (from_root) {
        return call.is_root() ? status{} : call.members.await(call.root());
    }
    for (std::size_t member = 0; call.is_root() && member < call.size(); ++member) {
        DIOMP_TRY(call.members.await(member));
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
