// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device_coll/internal/remote_calls.h"

#include "base/log.h"
#include "coll/collective.h"
#include "device_coll/internal/checked_call.h"
#include "device_coll/internal/host_copies.h"
#include "device_coll/session_call.h"
#include "group/group.h"
#include "offload/device_segment.h"
#include "offload/device_segments.h"
#include "offload/offload.h"
#include "offload/remote_memory.h"

#include <fmt/core.h>

#include <algorithm>

namespace diomp::device_coll {
namespace {

using coll::request;
using sync::operation;

std::uint32_t bit_of(int index) { return std::uint32_t{1} << index; }
/// Devices with larger indices use host memory.
constexpr int max_indices = 32;

template <typename Use>
void for_each_index(std::uint32_t bits, Use use) {
    for (int index = 0; index < max_indices; ++index) {
        if ((bits & bit_of(index)) != 0) {
            use(index);
        }
    }
}

/// Whether the session of the segment's device could know a buffer: variables of images are outside
/// of the segment of a GPU, and copied like memory of GPUs on a processor.
bool knows(const offload::device_segment &segment, const device_buffer_view &buffer) {
    return buffer.nbytes == 0 ||
           (segment.remote_index() ? buffer.location.on == nullptr
                                   : segment.offset_of(buffer.location.address).has_value());
}

/// The index of the segment's device among the remote devices of this rank.
std::optional<int> index_of(const offload::device_segment &segment,
                            offload::remote_memory *remote) {
    return segment.remote_index() ? segment.remote_index()
                                  : offload::session_index_of(segment, remote);
}

/// The members' ranks in the order of their endpoints.
std::vector<int> ranks_of(const group::group &members) {
    std::vector<int> ranks;
    for (std::size_t number = 0; number < members.count(); ++number) {
        std::size_t const member =
            members.endpoints().empty() ? number : members.endpoints()[number].member;
        ranks.push_back(members.members()[member].value());
    }
    return ranks;
}

} // namespace

/// What a member sends to the others before a call.
struct remote_calls::call_fact {
    std::int32_t code = 0;     ///< why it cannot take part
    std::int32_t index = none; ///< of its device, if the session of that can make the call
    /// Instead, when the group is freed: the indices of own devices whose sessions have a group.
    std::uint32_t freed_of_calls = 0;
    std::uint32_t freed_of_regions = 0;

    static constexpr std::int32_t none = -1;
};

result<std::vector<remote_calls::call_fact>> remote_calls::exchange(group::group &members,
                                                                    const call_fact &own) {
    {
        std::lock_guard const guard(mutex_);
        groups_.try_emplace(members.id());
    }
    std::vector<call_fact> all(members.size());
    DIOMP_TRY(collectives_.run_among_ranks(
        members,
        {.what = operation::allgather, .dst = all.data(), .src = &own, .amount = sizeof(own)}));
    return all;
}

result<std::vector<remote_calls::call_fact>> remote_calls::agree(group::group &members,
                                                                 const call_fact &own) {
    auto facts = exchange(members, own);
    DIOMP_TRY(facts);
    auto const failed =
        std::ranges::find_if(facts.value(), [](const call_fact &each) { return each.code != 0; });
    if (failed == facts.value().end()) {
        return facts;
    }
    auto const member = static_cast<std::size_t>(failed - facts.value().begin());
    return error(
        static_cast<ompx_status>(failed->code),
        fmt::format("rank {} cannot take part in the call", members.members()[member].value()),
        "see the error of that rank");
}

std::optional<int> remote_calls::session_index_of(const group::group &members, const request &args,
                                                  const endpoint_views &buffers, int device) const {
    offload::remote_memory *const remote = devices_.segments().remote();
    if (remote == nullptr || members.num_own() != 1 ||
        (args.amount == 0 && args.blocks == nullptr) ||
        (coll::is_reduction(args.what) && coll::user_operators::is_user_defined(args.op))) {
        return std::nullopt;
    }
    offload::device_segment *const segment = devices_.segments().table().find(device);
    if (segment == nullptr || !knows(*segment, buffers.src) || !knows(*segment, buffers.dst)) {
        return std::nullopt;
    }
    std::optional<int> const index = index_of(*segment, remote);
    return index && *index < max_indices && remote->has_collectives(*index) ? index : std::nullopt;
}

void remote_calls::report_failure(group::group &members, ompx_status code) {
    static_cast<void>(exchange(members, {.code = code}));
}

status remote_calls::run(group::group &members, checked_call &call) {
    auto facts = agree(members, {.index = call.session_index.value_or(call_fact::none)});
    DIOMP_TRY(facts);
    int const index = facts.value().front().index;
    bool const by_sessions =
        index != call_fact::none && std::ranges::all_of(facts.value(), [&](const call_fact &each) {
            return each.index == index;
        });
    if (by_sessions) {
        return run_in_sessions(members, call);
    }
    if (status copied = copies_.prepare(call); !copied) {
        report_failure(members, copied.failure().code());
        return copied;
    }
    DIOMP_TRY(agree(members, {}));
    return copies_.run(members, call);
}

std::vector<int> remote_calls::ranks_for_session(const group::group &members, int index) {
    {
        std::lock_guard const guard(mutex_);
        if ((groups_[members.id()].for_calls & bit_of(index)) != 0) {
            return {};
        }
    }
    return ranks_of(members);
}

status remote_calls::run_in_sessions(group::group &members, const checked_call &call) {
    int const index = *call.session_index;
    session_call sent{members.id(), ranks_for_session(members, index), call.args};
    sent.args.dst = call.own.front().dst.location.address;
    sent.args.src = call.own.front().src.location.address;
    sent.args.blocks = call.blocks.front();
    DIOMP_TRY(devices_.segments().remote()->run_call(index, encode(sent)));
    if (!sent.ranks.empty()) {
        std::lock_guard const guard(mutex_);
        groups_[members.id()].for_calls |= bit_of(index);
    }
    return {};
}

std::optional<int> remote_calls::own_index(const group::group &members) {
    if (members.num_own() != 1) {
        return std::nullopt;
    }
    std::size_t const own = members.endpoints().of(members.self().index()).front();
    int const device = members.endpoints()[own].device;
    if (device < 0) {
        return std::nullopt;
    }
    auto const segment = devices_.segments().segment_of(device);
    return segment ? index_of(*segment.value(), devices_.segments().remote()) : std::nullopt;
}

void remote_calls::describe(group::group &members, ompx_group_t handle) {
    offload::remote_memory *const remote = devices_.segments().remote();
    if (remote == nullptr ||
        !remote->has_collectives(0)) { // then there are none with other indices
        return;
    }
    int first = 0;
    int last = max_indices - 1;
    if (!members.endpoints().empty()) {
        auto const call_lock = members.lock_calls();
        auto const facts =
            exchange(members, {.index = own_index(members).value_or(call_fact::none)});
        if (!facts || std::ranges::any_of(facts.value(), [&](const call_fact &each) {
                return each.index == call_fact::none || each.index != facts.value().front().index;
            })) {
            return;
        }
        first = last = facts.value().front().index;
    }
    std::string const described = encode(session_group{handle, members.id(), ranks_of(members)});
    std::uint32_t known = 0;
    for (int index = first; index <= last && index < max_indices && remote->has_collectives(index);
         ++index) {
        remote->describe_group(index, described);
        known |= bit_of(index);
    }
    std::lock_guard const guard(mutex_);
    groups_[members.id()].for_regions = known;
}

void remote_calls::forget(group::group &members, ompx_group_t handle) {
    offload::remote_memory *const remote = devices_.segments().remote();
    if (remote == nullptr) {
        return;
    }
    auto const call_lock = members.lock_calls(); // waits for calls that do not block
    known_group own;
    {
        std::lock_guard const guard(mutex_);
        auto const found = groups_.find(members.id());
        if (found == groups_.end()) {
            return;
        }
        own = found->second;
    }
    std::string const ending = encode(session_group{handle, members.id(), {}});
    call_fact freed{.freed_of_calls = own.for_calls};
    for_each_index(own.for_regions, [&](int index) {
        if (remote->describe_group(index, ending)) {
            freed.freed_of_regions |= bit_of(index);
        }
    });
    auto facts = exchange(members, freed);
    if (!facts) {
        return; // the members cannot free the group either
    }
    {
        std::lock_guard const guard(mutex_);
        groups_.erase(members.id());
    }
    // A session whose call has failed may have no group. That of the others stays then.
    for (call_fact const &each : facts.value()) {
        freed.freed_of_calls &= each.freed_of_calls;
        freed.freed_of_regions &= each.freed_of_regions;
    }
    auto const free = [&](int index, std::uint64_t group) {
        status const done =
            remote->run_call(index, encode(session_call{group, {}, {.what = operation::none}}));
        if (!done) {
            log(log_level::debug, "a group of remote devices was not freed: {}",
                done.failure().message());
        }
    };
    for_each_index(freed.freed_of_calls, [&](int index) { free(index, members.id()); });
    for_each_index(freed.freed_of_regions,
                   [&](int index) { free(index, session_group::of_regions(members.id())); });
}

} // namespace diomp::device_coll
