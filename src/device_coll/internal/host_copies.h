// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Copies of device memory in host memory, for calls that the host makes on them.
#pragma once

#include "base/result.h"

namespace diomp::coll {
class collectives;
}
namespace diomp::group {
class group;
}
namespace diomp::offload {
class devices;
}

namespace diomp::device_coll {

struct checked_call;
struct device_buffer_view;

/// Any thread.
class host_copies {
public:
    /// The arguments must outlive this object.
    host_copies(coll::collectives &collectives, offload::devices &devices)
        : collectives_(collectives), devices_(devices) {}

    /// Sets the host addresses of all buffers; copies what the call reads. Blocks.
    status prepare(checked_call &call);
    /// Runs the call on host memory, after prepare(), and copies its results to the devices. The
    /// caller holds the call lock. Blocks.
    status run(group::group &members, const checked_call &call);

private:
    status prepare(device_buffer_view &of, bool is_read);
    status copy_results(const checked_call &call);

    coll::collectives &collectives_;
    offload::devices &devices_;
};

} // namespace diomp::device_coll
