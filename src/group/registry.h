// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The groups of one rank: creates them, finds them by handle, frees them.
//
// A group is complete when every member has the offsets of all blocks on its node. From an existing
// group (split) the offsets are exchanged in a barrier with payload. From a list (create, merge)
// each member sends its offset to all others in an active message and waits for theirs: n (n - 1)
// messages of 48 bytes. Messages carry a hash of the set of members, so many groups may be created
// at once; messages for one set match in the order in which they were sent.
#pragma once

#include "group/group.h"
#include "group/internal/handle_table.h"

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace diomp::group {

/// Thread-safe.
class group_registry {
public:
    /// Create before engine.start(). The arguments must outlive the registry.
    group_registry(messaging::engine &engine, workspace &space, world_rank self, int num_ranks);
    ~group_registry();
    group_registry(const group_registry &) = delete;
    group_registry &operator=(const group_registry &) = delete;

    /// Must be the first allocation from the workspace, so that the world's blocks have the same
    /// offset in every slot. No communication; requires fresh (zeroed) slots.
    status create_world(node_map nodes = {});
    [[nodiscard]] group &world() { return *world_; }
    /// NULL is the world. OMPX_ERR_ARG if the handle is invalid.
    result<group *> find(ompx_group_t handle);

    /// Collective over the listed ranks.
    result<ompx_group_t> create(std::span<const int> ranks);
    /// Creates a group of endpoints. Collective over their ranks.
    result<ompx_group_t> create_endpoints(std::span<const ompx_endpoint_t> list);
    /// Arguments of one member or endpoint in a split.
    struct split_choice {
        int color = 0; ///< negative: no group
        int key = 0;
    };
    /// Collective over `parent`. One choice and one result for each of the caller's endpoints in
    /// it, or one of each if it is a group of ranks. Equal colors give equal handles.
    status split(ompx_group_t parent, std::span<const split_choice> own,
                 std::span<ompx_group_t> results);
    /// Splits with one choice for all of the caller's endpoints.
    result<ompx_group_t> split(ompx_group_t parent, int color, int key);
    /// Creates the subgroups of a group of endpoints that spans nodes. Collective over it; the
    /// caller holds the call lock. OMPX_ERR_NOMEM on all members if a rank has no space.
    status make_subgroups(group &whole);
    /// Collective over the union. A caller outside one of the two passes OMPX_GROUP_NONE for it. A
    /// member of both must exist, since it sends each group the list of the other one.
    result<ompx_group_t> merge(ompx_group_t a, ompx_group_t b);
    /// Collective over the group.
    status free(ompx_group_t handle);

    /// Number of groups without the world.
    [[nodiscard]] std::size_t num_groups() const { return table_.num_groups(); }

private:
    /// A member's message about its block for a group that is being created.
    struct offer {
        std::uint64_t set_hash = 0;
        std::uint64_t list_hash = 0;
        std::uint64_t offset_plus_one = 0; ///< 0: no space
        std::uint64_t id = 0;              ///< proposed group id; that of the first member is used
    };
    /// A creation that timed out after its block had been offered to other ranks.
    struct unfinished {
        std::uint64_t offset_plus_one = 0;
        std::uint64_t list_hash = 0;
        std::uint64_t id = 0;
    };
    /// What a member sends in a split for one of its endpoints.
    struct member_choice {
        split_choice choice;
        std::uint64_t offset_plus_one = 0;
        std::uint64_t id = 0;
        endpoint owner;
    };

    status check_list(std::span<const ompx_endpoint_t> list, const char *function) const;
    result<ompx_group_t> create_from(parsed_endpoints wanted, const std::string &call);
    offer make_offer(const parsed_endpoints &wanted);
    static endpoint_list list_of(std::vector<endpoint> endpoints, std::size_t num_members);
    static error no_space_at(world_rank rank);
    result<std::vector<offer>> exchange(std::span<const world_rank> members, const offer &own,
                                        const std::string &call);
    bool all_offers_in(std::span<const world_rank> members, std::uint64_t set_hash);
    std::uint64_t next_id();
    std::string describe_missing(std::span<const world_rank> members, std::uint64_t set_hash,
                                 const std::string &call);
    result<ompx_group_t> assemble(group_description description);
    // split.cpp
    using own_blocks = std::map<int, std::uint64_t>; ///< by color
    result<std::vector<member_choice>>
    exchange_choices(group &whole, std::span<const split_choice> own, const own_blocks &blocks);
    result<group_description> description_of_color(const group &whole, int color,
                                                   const std::vector<member_choice> &choices) const;
    /// The caller's new groups by color. The caller holds the call lock.
    result<std::map<int, group_description>> describe_new_groups(group &whole,
                                                                 std::span<const split_choice> own);
    std::unique_ptr<group> make(group_description description);
    // merge.cpp
    result<ompx_group_t> create_union(std::vector<ompx_endpoint_t> list,
                                      std::span<const ompx_endpoint_t> other);
    result<std::vector<ompx_endpoint_t>> fetch_other_list(group &known, group *other,
                                                          std::uint64_t list_offset_plus_one);
    result<std::vector<ompx_endpoint_t>> receive_list(group &known, group *other,
                                                      std::size_t list_sender);

    messaging::engine &engine_;
    workspace &space_;
    world_rank self_;
    int num_ranks_;
    std::byte *own_slot_;
    transport::handler_id offer_handler_;
    matcher messages_;
    node_map nodes_;
    std::unique_ptr<group> world_;
    handle_table table_;
    std::atomic<std::uint64_t> num_ids_{0};

    std::mutex mutex_; ///< leaf lock; protects the members below
    /// [hash of the set][sender], in the order of arrival.
    std::map<std::uint64_t, std::map<world_rank, std::deque<offer>>> offers_;
    std::map<std::uint64_t, unfinished> unfinished_;
};

} // namespace diomp::group
