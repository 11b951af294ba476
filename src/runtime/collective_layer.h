// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Groups, and the collectives of their members on host and device memory.
#pragma once

#include "base/result.h"
#include "diomp/types.h"
#include "runtime/internal/modules.h"

#include <memory>

namespace diomp::runtime {

class job_connection;

/// Any thread, except create, create_world and finish.
class collective_layer {
public:
    collective_layer();
    ~collective_layer();

    /// Call before engine.start().
    void create(const settings &values, job_connection &job, memory::segment &own,
                offload::devices &devices);
    /// Creates the group of all ranks; call after engine.start(). Collective.
    status create_world(job_connection &job);
    /// Collective over the group.
    status free_group(ompx_group_t group);
    /// Waits until all ranks have called and messages of other nodes have arrived. Collective.
    status finish(job_connection &job);

    [[nodiscard]] group::group_registry &groups() { return *groups_; }
    [[nodiscard]] coll::collectives &on_host() { return *on_host_; }
    [[nodiscard]] device_coll::device_collectives &on_devices() { return *on_devices_; }

private:
    std::unique_ptr<group::segment_workspace> workspace_;
    std::unique_ptr<coll::collectives> on_host_; ///< used by queued calls of groups
    std::unique_ptr<device_coll::device_collectives>
        on_devices_; ///< used by queued calls of groups
    std::unique_ptr<group::group_registry> groups_;
};

} // namespace diomp::runtime
