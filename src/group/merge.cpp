// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Merging. Members of both groups know the union. They write the list of the group that the others
// do not know into their slot, and tell its place in a meeting of each group; the lowest of them
// also sends it to the members on other nodes. Then everybody knows the union, and it is created
// like any list.
#include "group/registry.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

namespace diomp::group {
namespace {

using sync::operation;

/// The device of a member of a group of ranks, as it travels.
constexpr int whole_rank = -2;

/// A group's members as the program lists them.
std::vector<ompx_endpoint_t> list_members(const group &of) {
    std::vector<ompx_endpoint_t> list;
    for (std::size_t index = 0; index < of.count(); ++index) {
        if (of.endpoints().empty()) {
            list.push_back({of.members()[index].value(), whole_rank});
        } else {
            const endpoint &each = of.endpoints()[index];
            list.push_back({of.members()[each.member].value(), each.device});
        }
    }
    return list;
}

/// Such a list in the own slot for others to read, for the length of a merge.
class shown_list {
public:
    shown_list(workspace &space, std::byte *slot, const group &shown) : space_(space) {
        std::vector<ompx_endpoint_t> const list = list_members(shown);
        std::size_t const nbytes = list.size() * sizeof(ompx_endpoint_t);
        if (auto const offset = space.allocate(nbytes)) {
            offset_plus_one_ = *offset + 1;
            std::memcpy(slot + *offset, list.data(), nbytes);
        }
    }
    ~shown_list() {
        if (offset_plus_one_ != 0) {
            space_.release(offset_plus_one_ - 1);
        }
    }
    shown_list(const shown_list &) = delete;
    shown_list &operator=(const shown_list &) = delete;

    [[nodiscard]] std::uint64_t offset_plus_one() const { return offset_plus_one_; }
    /// Somebody may read it later.
    void abandon() { offset_plus_one_ = 0; }

private:
    workspace &space_;
    std::uint64_t offset_plus_one_ = 0;
};

constexpr std::uint64_t knows_both = 1;

} // namespace

// Meets the members of `known` and returns the members of the other group, which the caller is in
// too if `other` is given.
result<std::vector<ompx_endpoint_t>>
group_registry::learn_other(group &known, group *other, std::uint64_t list_offset_plus_one) {
    auto const turn = known.enter();
    DIOMP_TRY(known.meet({.what = operation::group_merge},
                         {other != nullptr ? knows_both : 0, list_offset_plus_one,
                          other != nullptr ? other->count() : 0}));
    std::optional<std::size_t> teller;
    for (std::size_t member = 0; member < known.size(); ++member) {
        const sync::meeting_payload &told = known.payload_of(member);
        if (told[0] != knows_both) {
            continue;
        }
        if (told[1] == 0) {
            return error(OMPX_ERR_NOMEM, fmt::format("rank {} has no space to merge groups",
                                                     known.members()[member].value()));
        }
        teller = teller.value_or(member);
    }
    if (!teller) {
        return error(OMPX_ERR_ARG,
                     "ompx_group_merge: the groups have no common member, so nobody knows both",
                     "list the ranks in ompx_group_create");
    }
    return read_list(known, other, *teller);
}

// On the teller's node from its memory, elsewhere from its letter.
result<std::vector<ompx_endpoint_t>> group_registry::read_list(group &known, group *other,
                                                               std::size_t teller) {
    const sync::meeting_payload &told = known.payload_of(teller);
    std::vector<ompx_endpoint_t> list(told[2]);
    std::span<std::byte> const bytes = std::as_writable_bytes(std::span(list));
    bridge *const across = known.across();
    bool const is_here = across == nullptr || across->layout().node(teller) == across->own_node();
    if (is_here) {
        std::memcpy(bytes.data(),
                    engine_.transport().direct_base(known.members()[teller]) + told[1] - 1,
                    bytes.size());
    } else {
        receipt place;
        across->expect(place, teller, step_list, bytes);
        DIOMP_TRY(across->await(place));
    }
    std::vector<ompx_endpoint_t> sent;
    if (across != nullptr && known.self().index() == teller) {
        sent = list_members(*other);
    }
    for (std::size_t member = 0; !sent.empty() && member < known.size(); ++member) {
        if (across->layout().node(member) != across->own_node()) {
            DIOMP_TRY(across->send(member, step_list, std::as_bytes(std::span(sent))));
        }
    }
    if (across != nullptr) {
        DIOMP_TRY(across->finish_sends());
    }
    return list;
}

result<ompx_group_t> group_registry::create_union(std::vector<ompx_endpoint_t> list,
                                                  std::span<const ompx_endpoint_t> other) {
    bool const has_ranks = list.front().device == whole_rank;
    if (has_ranks != (other.front().device == whole_rank)) {
        return error(OMPX_ERR_ARG,
                     "ompx_group_merge: one group has ranks as members, the other endpoints",
                     "make both of the same kind, for instance with ompx_group_create_devices");
    }
    std::set<std::pair<int, int>> known;
    for (const ompx_endpoint_t &each : list) {
        known.emplace(each.rank, each.device);
    }
    std::ranges::copy_if(other, std::back_inserter(list), [&known](const ompx_endpoint_t &each) {
        return known.emplace(each.rank, each.device).second;
    });
    endpoint_parts parts = take_apart(list);
    if (has_ranks) {
        parts.endpoints.clear();
    }
    return create_from(std::move(parts), "ompx_group_merge");
}

result<ompx_group_t> group_registry::merge(ompx_group_t a, ompx_group_t b) {
    std::vector<group *> views;
    for (ompx_group_t const each : {a, b}) {
        if (each == OMPX_GROUP_NONE) {
            views.push_back(nullptr);
            continue;
        }
        auto found = find(each);
        if (!found) {
            return found.take_failure();
        }
        views.push_back(found.value());
    }
    if (views[0] == nullptr && views[1] == nullptr) {
        return error(OMPX_ERR_ARG, "ompx_group_merge: both groups are OMPX_GROUP_NONE",
                     "a caller is a member of one of the groups at least");
    }
    std::optional<shown_list> shown_a;
    std::optional<shown_list> shown_b;
    if (views[0] != nullptr && views[1] != nullptr) {
        shown_a.emplace(space_, own_slot_, *views[0]);
        shown_b.emplace(space_, own_slot_, *views[1]);
    }
    // Nobody leaves early because of an error in the first meeting: the second group's members are
    // waiting for those of both.
    std::vector<ompx_endpoint_t> list_a;
    std::vector<ompx_endpoint_t> list_b;
    std::optional<error> failure;
    if (views[0] != nullptr) {
        auto learnt = learn_other(*views[0], views[1], shown_b ? shown_b->offset_plus_one() : 0);
        if (learnt) {
            list_b = learnt.take();
        } else {
            failure = learnt.take_failure();
        }
    }
    if (views[1] != nullptr) {
        auto learnt = learn_other(*views[1], views[0], shown_a ? shown_a->offset_plus_one() : 0);
        if (learnt) {
            list_a = learnt.take();
        } else if (!failure) {
            failure = learnt.take_failure();
        }
    }
    if (!failure) {
        if (views[0] != nullptr) {
            list_a = list_members(*views[0]);
        }
        if (views[1] != nullptr) {
            list_b = list_members(*views[1]);
        }
        auto merged = create_union(std::move(list_a), list_b);
        if (merged) {
            return merged; // all have sent their offers, so all have the lists
        }
        failure = merged.take_failure();
    }
    if (shown_a) {
        shown_a->abandon();
        shown_b->abandon();
    }
    return std::move(*failure);
}

} // namespace diomp::group
