// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which ranks of a job share memory, where no launcher knows it: processes that several programs
// have started, perhaps for different users or in different containers. A rank belongs to the node
// of the first rank that it has passed a descriptor to, as the ranks of a node do with the arena's.
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "transport/node_watch.h"

#include <string>
#include <vector>

namespace diomp::launch {
class launcher;
}

namespace diomp::transport {

struct node_search {
    bool may_share = false; ///< this rank
    int max_ranks = 0;      ///< of a node, equal on all ranks; 0: any number
};

struct found_node {
    std::vector<peer_process> ranks; ///< ascending; with this rank
    std::string name;                ///< equal on the ranks of the node only; [0-9a-f]
};

/// Processes are on one node if they have the same user, host and namespaces of processes, users
/// and network, a descriptor can be passed from one to the other, and the system tells of the end
/// of processes (node_watch). Collective over the job: three fences. Blocks; leaves nothing in the
/// system. Errors: of the launcher.
result<found_node> find_node(launch::launcher &launcher, const node_search &how);

/// Equal for processes of one user whose host and namespaces are the same, as find_node() requires;
/// "" where that is not known.
std::string describe_surroundings();
/// 32 random digits: [0-9a-f]. Errors: OMPX_ERR_SYSTEM.
result<std::string> random_name();

} // namespace diomp::transport
