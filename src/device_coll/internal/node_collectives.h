// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Native collectives of devices on several nodes, where the devices of each node can access each
// other's memory: device to device within a node, through host memory of one leader rank per node
// between nodes. They are composed of calls on subgroups (group::node_subgroups); the first device
// of a node belongs to its leader.
//
//  bcast      within the root's node | among leaders | within the other nodes
//  allreduce  reduce to each leader's device | among leaders | bcast within each node
//  allgather  within each node | among leaders, whole nodes' blocks | other nodes' blocks to all
//
// Calls between nodes are split into chunks to bound the host memory.
#pragma once

#include "base/function_ref.h"
#include "coll/collective.h"
#include "device_coll/internal/direct_collectives.h"

#include <cstddef>
#include <span>
#include <vector>

namespace diomp::offload {
class devices;
}

namespace diomp::device_coll {

/// Any thread; the caller holds the group's call lock.
class node_collectives {
public:
    using buffers = direct_collectives::buffers;
    using outcome = direct_collectives::outcome;

    node_collectives(coll::collectives &collectives, offload::devices &devices,
                     direct_collectives &direct)
        : collectives_(collectives), devices_(devices), direct_(direct) {}

    /// Whether the operation is supported; all members get the same result.
    static bool has_plan(const coll::request &args);
    /// Collective over a group with subgroups per node; contract of direct_collectives::run(). If a
    /// device fails, the error is returned on its node and on nodes that wait for that node.
    result<outcome> run(group::group &members, const coll::request &args,
                        std::span<const buffers> own);

private:
    struct call;

    /// Agrees whether the members of all nodes can run the call; the first call of a group probes.
    result<outcome> agree_on_path(const call &of);
    status bcast(const call &of);
    status allreduce(const call &of);
    status allgather(const call &of);

    /// A call on the members of the node, `offset` bytes after the start of each dst.
    status run_intra_node(const call &of, const coll::request &args, std::size_t offset = 0);
    static std::vector<buffers> intra_node_buffers(const call &of, const coll::request &args,
                                                   std::size_t offset);
    /// On leaders: runs `work` if local_status is OK on all nodes. All members of a node get the
    /// resulting status.
    status run_inter_node(const call &of, status local_status, function_ref<status()> work);
    status bcast_between_leaders(const call &of, std::size_t root_node);
    status reduce_between_leaders(const call &of);    ///< combines the nodes' results
    status allgather_between_leaders(const call &of); ///< exchanges the nodes' blocks
    /// Copies between `offset` bytes after the start of dst on the leader's device and host memory.
    status copy_leader_buffer(const call &of, std::size_t offset, std::byte *host,
                              std::size_t nbytes, bool to_device);

    coll::collectives &collectives_;
    offload::devices &devices_;
    direct_collectives &direct_;
};

} // namespace diomp::device_coll
