// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Native collectives of devices on several nodes, where those of a node reach each other: from
// device to device inside the nodes, by way of host memory of one rank per node between them. They
// are made of calls on the parts of the group (group::node_parts); the first device of a node is
// its leader's.
//
//  bcast      inside the root's node | the leaders | inside the others
//  allreduce  to each leader's device | the leaders | from there to all
//  allgather  inside each node | the leaders, the blocks of their nodes | those of others to all
//
// Between nodes a call goes in pieces, so that little host memory is needed.
#pragma once

#include "base/function_ref.h"
#include "collective/collective.h"
#include "offload/offload.h"
#include "runtime/direct_collectives.h"

#include <cstddef>
#include <span>
#include <vector>

namespace diomp::runtime {

/// Any thread; the caller holds the group's turn.
class node_collectives {
public:
    using buffers = direct_collectives::buffers;
    using outcome = direct_collectives::outcome;

    node_collectives(collective::collectives &collectives, offload::devices &devices,
                     direct_collectives &direct)
        : collectives_(collectives), devices_(devices), direct_(direct) {}

    /// The same on all members.
    static bool has_plan(const collective::request &asked);
    /// As direct_collectives::run, over a group with parts. A device that fails is an error on its
    /// node and where somebody waits for that node.
    result<outcome> run(group::group &members, const collective::request &asked,
                        std::span<const buffers> own);

private:
    /// A call and the parts of its group.
    struct call {
        group::group &members;
        const collective::request &asked;
        std::span<const buffers> own;
        group::group &inside;
        group::group *between; ///< null: the caller is no leader

        [[nodiscard]] std::size_t own_node() const { return members.across()->own_node(); }
        [[nodiscard]] std::size_t node_of(std::size_t member) const {
            return members.across()->layout().node(members.endpoints()[member].member);
        }
        [[nodiscard]] std::size_t block_bytes() const {
            return asked.amount * (asked.type == 0 ? 1 : ompx_type_size(asked.type));
        }
        [[nodiscard]] std::vector<std::size_t> members_of(std::size_t node) const; ///< ascending
        /// A call on the node's members that uses all buffers as this one does.
        [[nodiscard]] collective::request inside_form() const;
    };

    /// Whether the members of all nodes can. The first time on a group they try.
    result<outcome> settle(const call &of);
    status bcast(const call &of);
    status allreduce(const call &of);
    status allgather(const call &of);

    /// A call on the members of the node, `offset` bytes behind each dst.
    status run_inside(const call &of, const collective::request &asked, std::size_t offset = 0);
    static std::vector<buffers> buffers_inside(const call &of, const collective::request &asked,
                                               std::size_t offset);
    /// What leaders do if all nodes are well so far; their nodes learn how it went.
    status run_between(const call &of, status so_far, function_ref<status()> work);
    status pass_on(const call &of, std::size_t root_node);
    status combine_nodes(const call &of);   ///< the results of nodes
    status exchange_blocks(const call &of); ///< of nodes
    /// Between the leader's device, `offset` bytes behind its dst, and the host.
    status copy_leading(const call &of, std::size_t offset, std::byte *host, std::size_t nbytes,
                        bool to_device);

    collective::collectives &collectives_;
    offload::devices &devices_;
    direct_collectives &direct_;
};

} // namespace diomp::runtime
