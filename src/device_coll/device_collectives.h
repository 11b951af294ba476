// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collectives on device memory. How a call is executed: internal/device_calls.h.
#pragma once

#include "base/result.h"
#include "diomp/types.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

struct ompx_event;

namespace diomp {
enum class ccl_choice;
}
namespace diomp::messaging {
class engine;
}
namespace diomp::group {
class group;
class group_registry;
} // namespace diomp::group
namespace diomp::coll {
class collectives;
struct request;
} // namespace diomp::coll
namespace diomp::offload {
class devices;
}

namespace diomp::device_coll {

class device_calls;

struct options {
    ccl_choice wanted{};                          ///< equal on all ranks
    std::optional<std::size_t> direct_from_bytes; ///< empty: chosen by vendor_choice
    std::string nccl_library;
    std::string rccl_library;
};

/// Any thread.
class device_collectives {
public:
    /// The arguments must outlive this object.
    device_collectives(coll::collectives &collectives, offload::devices &devices,
                       messaging::engine &engine, group::group_registry &groups, options chosen);
    ~device_collectives();

    /// Runs a collective; blocks. The buffers in `args` are device or mapped host addresses.
    /// `device` is one of the caller's endpoints in the group or OMPX_GROUP_DEVICES; in a group of
    /// ranks any device.
    status run(group::group &members, const coll::request &args, int device);
    /// Starts a collective; does not block.
    result<ompx_event *> start(group::group &members, const coll::request &args, int device);
    /// Call when a group has been created. Collective if its members use remote devices.
    void describe(group::group &members, ompx_group_t handle);
    /// Call before the group is freed. Collective if its members use remote devices. Calls that
    /// wait for other endpoints of this rank fail with OMPX_ERR_ARG.
    void forget(group::group &members, ompx_group_t handle);
    /// Waits for all started calls. Call before the groups end.
    void finish();

private:
    std::unique_ptr<device_calls> calls_;
};

} // namespace diomp::device_coll
