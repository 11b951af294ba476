// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The groups of one rank: creates them, finds them by handle, frees them.
//
// A group is complete when every member has the offsets of all blocks on its node. From an existing
// group (split) the offsets are exchanged in a barrier with payload, from a list (create, merge) in
// messages (offer_exchange.h).
#pragma once

#include "base/result.h"
#include "diomp/types.h"
#include "group/internal/endpoints.h"
#include "group/internal/node_layout.h"
#include "sync/call_signature.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace diomp {
template <typename Object, typename Handle, std::uint64_t Tag>
class handle_table;
}

namespace diomp::messaging {
class engine;
}

namespace diomp::group {

class group;
struct group_description;
class group_factory;
class offer_exchange;
class workspace;

/// Thread-safe.
class group_registry {
public:
    /// Create before engine.start(). The arguments must outlive the registry.
    group_registry(messaging::engine &engine, workspace &space, world_rank self, int num_ranks);
    ~group_registry();
    group_registry(const group_registry &) = delete;
    group_registry &operator=(const group_registry &) = delete;

    /// Must be the first allocation from the workspace, so that the world's blocks have the same
    /// offset in every slot. No communication; requires fresh (zeroed) slots. `ranks`: the ranks of
    /// the world in order; outlives the registry; empty: the registry makes such a table.
    status create_world(const node_map &nodes = {}, std::span<const world_rank> ranks = {});
    [[nodiscard]] group &world() { return *world_; }
    /// NULL is the world. OMPX_ERR_ARG if the handle is invalid.
    result<group *> find(ompx_group_t handle);
    /// In a session of a remote device: find() tries this function first, which returns the
    /// session's group for a handle of its host, or OMPX_GROUP_NONE; it may block. Call before
    /// there are groups.
    using host_group_finder = std::function<result<ompx_group_t>(ompx_group_t)>;
    void find_groups_of_host(host_group_finder find);
    /// find() without groups of the host.
    result<group *> find_own(ompx_group_t handle);

    /// Collective over the listed ranks. Creations of groups of the same ranks match in order;
    /// those with different keys may be made at the same time, in any order.
    result<ompx_group_t> create(std::span<const int> ranks, std::uint64_t key = 0);
    /// Creates a group of endpoints. Collective over their ranks.
    result<ompx_group_t> create_endpoints(std::span<const ompx_endpoint_t> list);
    /// Arguments of one member or endpoint in a split.
    struct split_choice {
        int color = 0; ///< negative: no group
        int key = 0;
    };
    /// Collective over `parent`; `what` is the public call. One choice and one result for each of
    /// the caller's endpoints in it, or one of each if it is a group of ranks. Equal colors give
    /// equal handles.
    status split(sync::operation what, ompx_group_t parent, std::span<const split_choice> own,
                 std::span<ompx_group_t> results);
    /// Splits with one choice for all of the caller's endpoints.
    result<ompx_group_t> split(sync::operation what, ompx_group_t parent, int color, int key);
    /// Creates the subgroups of a group of endpoints that spans nodes. Collective over it; the
    /// caller holds the call lock. OMPX_ERR_NOMEM on all members if a rank has no space.
    status make_subgroups(group &whole);
    /// Collective over the union. A caller outside one of the two passes OMPX_GROUP_NONE for it. A
    /// member of both must exist, since it sends each group the list of the other one.
    result<ompx_group_t> merge(ompx_group_t a, ompx_group_t b);
    /// Collective over the group.
    status free(ompx_group_t handle);

    /// `freed` is called with the id of each group that free() removes, before its handle is
    /// invalid. Call before there are groups.
    void on_free(std::function<void(std::uint64_t id)> freed) { on_free_ = std::move(freed); }

    /// Number of groups without the world.
    [[nodiscard]] std::size_t num_groups() const;

private:
    using table = handle_table<group, ompx_group_t, 0xd10b>;

    status check_list(std::span<const ompx_endpoint_t> list, const char *function) const;
    result<ompx_group_t> create_from(parsed_endpoints wanted, const std::string &call);
    result<ompx_group_t> assemble(group_description description);

    int num_ranks_;
    std::unique_ptr<offer_exchange> offers_;
    std::unique_ptr<group_factory> factory_;
    std::unique_ptr<group> world_;
    std::unique_ptr<table> table_;
    host_group_finder find_of_host_; ///< null: no session
    std::function<void(std::uint64_t)> on_free_;
};

} // namespace diomp::group
