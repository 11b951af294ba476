// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The devices with memory of their own that this process uses, and the memory of segments that a
// network has to know when it is made, long before the program uses the device.
#pragma once

#include "offload/accelerators.h"
#include "offload/segment_memory.h"

#include <memory>
#include <mutex>
#include <vector>

namespace diomp::offload {

/// Any thread. Outlives the network and all that uses its devices.
class early_segments {
public:
    explicit early_segments(accelerators::options libraries) : devices_(std::move(libraries)) {}
    ~early_segments();
    early_segments(const early_segments &) = delete;
    early_segments &operator=(const early_segments &) = delete;

    [[nodiscard]] accelerators &devices() { return devices_; }

    /// Makes the memory of the segment of that device, as segment_memory::create_whole.
    result<conduit::device_range> make(const accelerator &on, std::size_t size_bytes,
                                       int num_sharing);
    /// nullptr: there is none, or it has been taken.
    std::unique_ptr<segment_memory> take(const accelerator &on);

private:
    accelerators devices_;
    std::mutex mutex_; ///< over the rest
    std::vector<std::unique_ptr<segment_memory>> made_;
};

} // namespace diomp::offload
