// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The segments of the devices that this rank will drive, for a network that registers device memory
// only at start-up. OpenMP has not numbered its devices by then, so the vendors' libraries are
// queried.
#pragma once

#include "config/settings.h"
#include "launch/launch.h"
#include "offload/preregistered_segments.h"
#include "transport/types.h"

namespace diomp::runtime {

/// For conduit_options. The arguments must outlive the returned function; the ranks' localities
/// must have been published (rank_devices.h). If a device's segment cannot be made, the function
/// logs a warning; the device later gets a segment that is not registered with the network.
transport::device_range_maker make_preregistered_segments(const settings &values,
                                                          launch::launcher &launcher,
                                                          offload::preregistered_segments &into);

} // namespace diomp::runtime
