// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The groups of one rank: makes them, finds them by handle, ends them.
//
// A group comes about when every member knows the blocks of all others on its node. From an
// existing group (split) the offsets travel in a meeting. From a list (create, merge) each member
// sends its offset to all others as an active message and waits for theirs: n (n - 1) messages of
// 48 bytes. Messages carry a hash of the set of members, so many groups may be under way at once;
// those of one set match in the order in which they were sent.
#pragma once

#include "group/group.h"
#include "group/handle_table.h"

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

/// Any thread.
class group_registry {
public:
    /// Before engine.start(). All must outlive the registry.
    group_registry(conduit::engine &engine, workspace &space, world_rank self, int num_ranks);
    ~group_registry();
    group_registry(const group_registry &) = delete;
    group_registry &operator=(const group_registry &) = delete;

    /// First allocation from the workspace, so that the world's blocks lie at the same place in
    /// every slot. No communication, but only fresh (zeroed) slots will do.
    status create_world(node_map nodes = {});
    [[nodiscard]] group &world() { return *world_; }
    /// NULL is the world.
    result<group *> find(ompx_group_t handle);

    /// Collective over the listed ranks; `function` is the caller's name in errors.
    result<ompx_group_t> create(std::span<const int> ranks);
    /// The same of endpoints, over their ranks.
    result<ompx_group_t> create_endpoints(std::span<const ompx_endpoint_t> list);
    /// Where a member goes in a split.
    struct choice {
        int color = 0; ///< negative: nowhere
        int key = 0;
    };
    /// Collective over `parent`. One choice and one result for each of the caller's endpoints in
    /// it, or one of each if it is a group of ranks. Equal colors give equal handles.
    status split(ompx_group_t parent, std::span<const choice> own, std::span<ompx_group_t> results);
    /// The same choice for all of them.
    result<ompx_group_t> split(ompx_group_t parent, int color, int key);
    /// Makes the parts of a group of endpoints over several nodes. Collective over it, with the
    /// turn. OMPX_ERR_NOMEM, on all: some rank has no space for them.
    status divide(group &whole);
    /// Collective over the union. A caller outside one of the two passes OMPX_GROUP_NONE for it;
    /// a member of both must exist, since it tells the others who is in the other group.
    result<ompx_group_t> merge(ompx_group_t a, ompx_group_t b);
    /// Collective over the group.
    status free(ompx_group_t handle);

    /// Without the world.
    [[nodiscard]] std::size_t num_groups() const { return table_.num_groups(); }

private:
    /// What a member tells about its part in a group that is being made.
    struct offer {
        std::uint64_t set_hash = 0;
        std::uint64_t list_hash = 0;
        std::uint64_t offset_plus_one = 0; ///< 0: no space
        std::uint64_t id = 0;              ///< of the group; that of the first member counts
    };
    /// A creation that timed out: the block has been offered already.
    struct unfinished {
        std::uint64_t offset_plus_one = 0;
        std::uint64_t list_hash = 0;
        std::uint64_t id = 0;
    };
    /// What a member tells in a split for one of its endpoints.
    struct told_choice {
        choice wants;
        std::uint64_t offset_plus_one = 0;
        std::uint64_t id = 0;
        endpoint who;
    };

    status check_list(std::span<const ompx_endpoint_t> list, const char *function) const;
    result<ompx_group_t> create_from(endpoint_parts wanted, const std::string &call);
    offer make_offer(const endpoint_parts &wanted);
    static endpoint_list list_of(std::vector<endpoint> endpoints, std::size_t num_members);
    static error no_space_at(world_rank rank);
    result<std::vector<offer>> exchange(std::span<const world_rank> members, const offer &own,
                                        const std::string &call);
    bool all_offers_in(std::span<const world_rank> members, std::uint64_t set_hash);
    std::uint64_t next_id();
    std::string describe_missing(std::span<const world_rank> members, std::uint64_t set_hash,
                                 const std::string &call);
    result<ompx_group_t> assemble(group_parts parts);
    // split.cpp
    using own_blocks = std::map<int, std::uint64_t>; ///< by color
    result<std::vector<told_choice>> tell_choices(group &whole, std::span<const choice> own,
                                                  const own_blocks &blocks);
    result<group_parts> part_of_color(const group &whole, int color,
                                      const std::vector<told_choice> &told) const;
    /// The caller's parts by color. With the turn.
    result<std::map<int, group_parts>> split_parts(group &whole, std::span<const choice> own);
    std::unique_ptr<group> make(group_parts parts);
    // merge.cpp
    result<ompx_group_t> create_union(std::vector<ompx_endpoint_t> list,
                                      std::span<const ompx_endpoint_t> other);
    result<std::vector<ompx_endpoint_t>> learn_other(group &known, group *other,
                                                     std::uint64_t list_offset_plus_one);
    result<std::vector<ompx_endpoint_t>> read_list(group &known, group *other, std::size_t teller);

    conduit::engine &engine_;
    workspace &space_;
    world_rank self_;
    int num_ranks_;
    std::byte *own_slot_;
    conduit::handler_id offer_handler_;
    mailbox letters_;
    node_map nodes_;
    std::unique_ptr<group> world_;
    handle_table table_;
    std::atomic<std::uint64_t> num_ids_{0};

    std::mutex mutex_; ///< leaf lock over the rest
    /// By hash of the set, then sender; in the order of arrival.
    std::map<std::uint64_t, std::map<world_rank, std::deque<offer>>> offers_;
    std::map<std::uint64_t, unfinished> unfinished_;
};

} // namespace diomp::group
