// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Groups: ordered sets of ranks that make collective calls together.
//
// member: a rank of the group, numbered by its group rank. endpoint: a device of a member, if the
// program has created the group from endpoints; endpoints have numbers of their own (endpoints.h).
// local_members: the members on the caller's node (local_group). internode: communication with the
// other nodes, if the group has any. handle: an index with a generation that the program keeps,
// never an address.
#pragma once

#include "group/internal/call_queue.h"
#include "group/internal/endpoints.h"
#include "group/internal/local_group.h"
#include "group/internal/node_layout.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace diomp::group {

struct group_description {
    std::vector<world_rank> members; ///< [group rank]
    /// [group rank], instead of `members`; outlives the group.
    std::span<const world_rank> shared_members;
    /// [group rank] of the members' blocks in their slots; one element if all are equal.
    std::vector<std::uint64_t> offsets;
    std::size_t self = 0;    ///< group rank of the caller
    std::uint64_t id = 0;    ///< equal on all members, unique among groups
    endpoint_list endpoints; ///< empty: a group of ranks
};

class group;
class internode_comm;
class matcher;

/// Subgroups of a group of endpoints that spans nodes, for calls with one algorithm within a node
/// and another one between nodes.
struct node_subgroups {
    std::unique_ptr<group> intra_node; ///< the endpoints on the caller's node, in group order
    std::unique_ptr<group> inter_node; ///< the first endpoint of each node; null: not the caller's
    bool are_probed = false;           ///< set by the user of the subgroups
};

/// Any thread may read the members; the thread that makes a call holds the call lock.
class group {
public:
    group(messaging::engine &engine, workspace &space, matcher &messages, const node_map &nodes,
          group_description description);
    ~group();
    group(const group &) = delete;
    group &operator=(const group &) = delete;

    /// Equal on all members, unique among groups; 0: the world.
    [[nodiscard]] std::uint64_t id() const { return id_; }
    [[nodiscard]] std::size_t size() const { return members_.size(); }
    [[nodiscard]] group_rank self() const { return self_; }
    [[nodiscard]] std::span<const world_rank> members() const { return members_; }
    [[nodiscard]] const endpoint_list &endpoints() const { return endpoints_; }
    /// Number of endpoints, or of members in a group of ranks: the size that the program sees.
    [[nodiscard]] std::size_t count() const {
        return endpoints_.empty() ? size() : endpoints_.size();
    }
    /// Number of the caller's endpoints; 1 in a group of ranks.
    [[nodiscard]] std::size_t num_own() const {
        return endpoints_.empty() ? 1 : endpoints_.of(self_.index()).size();
    }
    /// Number in the group of the caller's endpoint `index`.
    [[nodiscard]] std::size_t own(std::size_t index) const {
        return endpoints_.empty() ? self_.index() : endpoints_.of(self_.index())[index];
    }
    [[nodiscard]] call_queue &calls() { return calls_; }
    [[nodiscard]] call_queue::call_lock lock_calls() { return calls_.lock_calls(); }
    [[nodiscard]] messaging::engine &engine() { return engine_; }
    /// Wakes the threads of this rank that wait for memory that changed (engine::wake_waiters).
    void wake_waiters();

    /// The members on the caller's node.
    [[nodiscard]] local_group &local_members() { return local_; }
    [[nodiscard]] const node_layout &layout() const { return layout_; }
    [[nodiscard]] bool spans_nodes() const { return internode_ != nullptr; }
    /// Communication with the other nodes; nullptr if the group is on one node.
    [[nodiscard]] internode_comm *internode() { return internode_.get(); }

    /// Barrier: blocks until every member has made the call. OMPX_ERR_MISMATCH on all members if
    /// they made different calls; the group stays usable.
    status arrive_and_wait(const sync::call_signature &call) {
        return internode_ ? arrive_between_nodes(call) : local_.barrier().arrive_and_wait(call);
    }
    /// Barrier after which each member has the payloads of all. Between nodes every member keeps a
    /// table of all payloads, so this is for creating groups, not for data.
    status arrive_and_wait(const sync::call_signature &call, const sync::round_payload &payload);
    [[nodiscard]] const sync::round_payload &payload_of(std::size_t member) const;
    /// Frees that table.
    void forget_payloads();
    /// Barrier in which members may veto the call. Returns the veto of the lowest one on all
    /// members.
    result<std::optional<veto>> agree(const sync::call_signature &call,
                                      std::optional<std::uint64_t> own_veto);

    /// Null before group_registry::make_subgroups. The caller holds the call lock.
    [[nodiscard]] node_subgroups *subgroups() { return subgroups_.get(); }
    void set_subgroups(node_subgroups subgroups) {
        subgroups_ = std::make_unique<node_subgroups>(std::move(subgroups));
    }

    /// Last call on the group: blocks until no other member accesses this member's block. On error
    /// the block is never freed.
    status depart(const sync::call_signature &call);

private:
    status arrive_between_nodes(const sync::call_signature &call);

    messaging::engine &engine_;
    std::uint64_t id_;
    std::vector<world_rank> own_members_; ///< empty if the table of the members is shared
    std::span<const world_rank> members_;
    group_rank self_;
    endpoint_list endpoints_;
    node_layout layout_;
    local_group local_;
    std::unique_ptr<internode_comm> internode_;
    std::unique_ptr<node_subgroups> subgroups_;
    call_queue calls_; ///< last member, so that its thread ends first
};

/// While it exists, the calls on the group are steps of one call of the program: if some members
/// fail in the middle and leave out the rest, the next call finds all in step. The outermost of
/// nested ones counts. The caller holds the call lock.
class several_rounds {
public:
    explicit several_rounds(group &of);
    ~several_rounds();
    several_rounds(const several_rounds &) = delete;
    several_rounds &operator=(const several_rounds &) = delete;

private:
    sync::call_scope on_node_;
    internode_comm *between_nodes_; ///< null: the group is on one node, or in a call already
};

/// The mismatch of an earlier call that was detected only now, if any. For the end of a call of the
/// program that has succeeded: an error between its steps would leave the other members in it.
[[nodiscard]] status take_late_mismatch(group &members);

} // namespace diomp::group
