// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Merging. A member of both groups writes the member list of each group into its slot, and
// publishes the list's offset in a barrier of the other group. The lowest such member also sends
// the list to the members on other nodes. Then all members have the union, and it is created as
// from a list.
#include "group/group.h"
#include "group/internal/group_factory.h"
#include "group/internode.h"
#include "group/registry.h"
#include "transport/conduit.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

namespace diomp::group {
namespace {

using sync::operation;

/// Device number in the exchanged list for a member of a group of ranks.
constexpr int whole_rank = -2;

/// A group's members in the form of the public interface.
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

/// A member list in the own slot that other ranks read during a merge.
class exported_list {
public:
    exported_list(workspace &space, std::byte *slot, const group &exported) : space_(space) {
        std::vector<ompx_endpoint_t> const list = list_members(exported);
        std::size_t const nbytes = list.size() * sizeof(ompx_endpoint_t);
        if (auto const offset = space.allocate(nbytes)) {
            offset_plus_one_ = *offset + 1;
            std::memcpy(slot + *offset, list.data(), nbytes);
        }
    }
    ~exported_list() {
        if (offset_plus_one_ != 0) {
            space_.release(offset_plus_one_ - 1);
        }
    }
    exported_list(const exported_list &) = delete;
    exported_list &operator=(const exported_list &) = delete;

    [[nodiscard]] std::uint64_t offset_plus_one() const { return offset_plus_one_; }
    /// Another rank may read the list later, so it is never freed.
    void keep_forever() { offset_plus_one_ = 0; }

private:
    workspace &space_;
    std::uint64_t offset_plus_one_ = 0;
};

constexpr std::uint64_t is_in_both = 1;

// Members on the sender's node read its memory, other members receive a message.
result<std::vector<ompx_endpoint_t>> receive_list(group &known, const group *other,
                                                  std::size_t list_sender) {
    const sync::round_payload &payload = known.payload_of(list_sender);
    std::vector<ompx_endpoint_t> list(payload[2]);
    std::span<std::byte> const bytes = std::as_writable_bytes(std::span(list));
    internode_comm *const internode = known.internode();
    if (known.layout().node(list_sender) == known.layout().own_node) {
        std::memcpy(bytes.data(),
                    known.engine().transport().direct_base(known.members()[list_sender]) +
                        payload[1] - 1,
                    bytes.size());
    } else {
        recv_request request;
        internode->channel().post_recv(request, list_sender, step_list, bytes);
        DIOMP_TRY(internode->channel().wait_received(request));
    }
    std::vector<ompx_endpoint_t> sent;
    if (internode != nullptr && known.self().index() == list_sender) {
        sent = list_members(*other);
    }
    for (std::size_t member = 0; !sent.empty() && member < known.size(); ++member) {
        if (known.layout().node(member) != known.layout().own_node) {
            DIOMP_TRY(internode->channel().send(member, step_list, std::as_bytes(std::span(sent))));
        }
    }
    if (internode != nullptr) {
        DIOMP_TRY(internode->channel().finish_sends());
    }
    return list;
}

// Runs a barrier of the group `known` and returns the members of the other group. `other` is that
// group if the caller is a member of both, else null.
result<std::vector<ompx_endpoint_t>> fetch_other_list(group &known, const group *other,
                                                      std::uint64_t list_offset_plus_one) {
    auto const call_lock = known.lock_calls();
    several_rounds const rounds(known);
    DIOMP_TRY(known.arrive_and_wait({.what = operation::group_merge},
                                    {other != nullptr ? is_in_both : 0, list_offset_plus_one,
                                     other != nullptr ? other->count() : 0}));
    std::optional<std::size_t> list_sender;
    for (std::size_t member = 0; member < known.size(); ++member) {
        const sync::round_payload &payload = known.payload_of(member);
        if (payload[0] != is_in_both) {
            continue;
        }
        if (payload[1] == 0) {
            return error(OMPX_ERR_NOMEM,
                         fmt::format("rank {} has no space to merge groups",
                                     known.members()[member].value()),
                         "free groups that are not needed any more");
        }
        list_sender = list_sender.value_or(member);
    }
    if (!list_sender) {
        return error(OMPX_ERR_ARG, "ompx_group_merge: the groups have no common member",
                     "list the ranks in ompx_group_create");
    }
    auto const receive = [&] { return receive_list(known, other, *list_sender); };
    internode_comm *const internode = known.internode();
    return internode == nullptr ? receive() : internode->make_call(receive);
}

result<parsed_endpoints> unite(std::vector<ompx_endpoint_t> list,
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
    parsed_endpoints parts = split_endpoint_list(list);
    if (has_ranks) {
        parts.endpoints.clear();
    }
    return parts;
}

} // namespace

result<ompx_group_t> group_registry::merge(ompx_group_t a, ompx_group_t b) {
    std::vector<group *> groups;
    for (ompx_group_t const each : {a, b}) {
        if (each == OMPX_GROUP_NONE) {
            groups.push_back(nullptr);
            continue;
        }
        auto found = find(each);
        if (!found) {
            return found.take_failure();
        }
        groups.push_back(found.value());
    }
    if (groups[0] == nullptr && groups[1] == nullptr) {
        return error(OMPX_ERR_ARG, "ompx_group_merge: both groups are OMPX_GROUP_NONE",
                     "a caller is a member of one of the groups at least");
    }
    std::optional<exported_list> exported_a;
    std::optional<exported_list> exported_b;
    if (groups[0] != nullptr && groups[1] != nullptr) {
        exported_a.emplace(factory_->space(), factory_->own_slot(), *groups[0]);
        exported_b.emplace(factory_->space(), factory_->own_slot(), *groups[1]);
    }
    // An error in the first barrier does not end the call: the members of the second group wait for
    // those of both.
    std::vector<ompx_endpoint_t> list_a;
    std::vector<ompx_endpoint_t> list_b;
    std::optional<error> failure;
    if (groups[0] != nullptr) {
        auto fetched =
            fetch_other_list(*groups[0], groups[1], exported_b ? exported_b->offset_plus_one() : 0);
        if (fetched) {
            list_b = fetched.take();
        } else {
            failure = fetched.take_failure();
        }
    }
    if (groups[1] != nullptr) {
        auto fetched =
            fetch_other_list(*groups[1], groups[0], exported_a ? exported_a->offset_plus_one() : 0);
        if (fetched) {
            list_a = fetched.take();
        } else if (!failure) {
            failure = fetched.take_failure();
        }
    }
    if (!failure) {
        if (groups[0] != nullptr) {
            list_a = list_members(*groups[0]);
        }
        if (groups[1] != nullptr) {
            list_b = list_members(*groups[1]);
        }
        auto both = unite(std::move(list_a), list_b);
        auto merged = both ? create_from(both.take(), "ompx_group_merge")
                           : result<ompx_group_t>(both.take_failure());
        if (merged) {
            return merged; // all have sent their offers, so all have the lists
        }
        failure = merged.take_failure();
    }
    if (exported_a) {
        exported_a->keep_forever();
        exported_b->keep_forever();
    }
    return std::move(*failure);
}

} // namespace diomp::group
