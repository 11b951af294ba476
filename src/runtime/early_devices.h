// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The segments of the devices that this rank will drive, for a network that has to know them when
// it is made. OpenMP has not numbered its devices then; the vendors' libraries are asked.
#pragma once

#include "base/settings.h"
#include "launch/launch.h"
#include "offload/offload.h"

namespace diomp::runtime {

/// For conduit_options. The arguments outlive the maker; the ranks' places are published
/// (rank_devices.h). A device for which it fails gets a warning, and later a segment of which the
/// network does not know.
conduit::device_range_maker make_early_segments(const settings &values, launch::launcher &launcher,
                                                offload::early_segments &into);

} // namespace diomp::runtime
