// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The devices with memory of their own that this process uses: libomptarget says which one it
// means, the vendor's library is loaded then.
#pragma once

#include "conduit/conduit.h"
#include "device/device.h"
#include "device/stream_pool.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace diomp::offload {

enum class vendor : std::uint32_t { none, cuda, hip };

/// As networks know their memory.
[[nodiscard]] constexpr conduit::memory_kind kind_of(vendor made_by) {
    return made_by == vendor::cuda  ? conduit::memory_kind::cuda
           : made_by == vendor::hip ? conduit::memory_kind::hip
                                    : conduit::memory_kind::host;
}

/// One device. Lives as long as `accelerators`.
struct accelerator {
    vendor made_by = vendor::none;
    device::device_id id;
    device::backend *backend = nullptr;
    device::stream_pool *streams = nullptr;
};

/// One side of a copy in this process.
struct end {
    std::byte *address = nullptr;
    const accelerator *on = nullptr; ///< null: host memory
};

/// Any thread.
class accelerators {
public:
    struct options {
        std::string cuda_library; ///< as device::library_path_option
        std::string hip_library;
        int max_active_streams = 32; ///< per device
    };

    explicit accelerators(options chosen) : options_(std::move(chosen)) {}

    /// By the name that LLVM gives its plugin. nullptr: a host plugin, or the vendor's library is
    /// of no use, which the log says once.
    const accelerator *find(const std::string &plugin, int plugin_device);
    /// The device of this process with that identity, also if the program has not used it. nullptr:
    /// it is not visible here.
    const accelerator *find(vendor made_by, const device::device_uuid &uuid);

    /// All devices of a vendor; none where there are none, or no library of the vendor, of which
    /// nobody is told yet. The result stays.
    std::span<const accelerator> all_of(vendor made_by);

    /// Looks once at all copies in flight; true: there are none. Does not block. An error is about
    /// a copy whose starter has not been told.
    result<bool> poll();

private:
    struct maker {
        std::unique_ptr<device::backend> backend;
        std::unique_ptr<device::stream_pool> streams;
        std::vector<accelerator> devices; ///< [device]
        bool failed = false;
    };

    /// nullptr: the vendor's library is of no use, which the log says once if it is `wanted`.
    maker *load(vendor of, bool wanted);

    options options_;
    std::mutex mutex_; ///< over the rest
    std::map<vendor, maker> makers_;
    /// [vendor] What poll asks, without the mutex: fences poll in a loop.
    std::array<std::atomic<device::stream_pool *>, 3> pools_{};
};

} // namespace diomp::offload
