// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The accelerators of this process, and the memory of segments that must be registered when the
// network is created, long before the program uses the device.
#pragma once

#include "offload/accelerators.h"
#include "offload/internal/segment_memory.h"

#include <memory>
#include <mutex>
#include <vector>

namespace diomp::offload {

/// Thread-safe. Outlives the network and all users of its devices.
class preregistered_segments {
public:
    explicit preregistered_segments(accelerators::options libraries)
        : devices_(std::move(libraries)) {}
    ~preregistered_segments();
    preregistered_segments(const preregistered_segments &) = delete;
    preregistered_segments &operator=(const preregistered_segments &) = delete;

    [[nodiscard]] accelerators &devices() { return devices_; }

    /// Creates the memory of the device's segment, see segment_memory::create_committed.
    result<transport::device_range> make(const accelerator &on, std::size_t size_bytes,
                                         int num_sharing);
    /// Transfers the memory to the caller. nullptr: none was created, or it has been claimed.
    std::unique_ptr<segment_memory> claim(const accelerator &on);

private:
    accelerators devices_;
    std::mutex mutex_; ///< guards made_
    std::vector<std::unique_ptr<segment_memory>> made_;
};

} // namespace diomp::offload
