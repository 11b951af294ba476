// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The devices with their own memory (accelerators) that this process uses. libomptarget names a
// device; the vendor's library is loaded on the first use of one of its devices.
#pragma once

#include "device/device.h"
#include "device/stream_pool.h"
#include "transport/types.h"

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

class service_backend;
class service_devices;

/// service: devices of services, whichever vendor has made them.
enum class vendor : std::uint32_t { none, cuda, hip, service };

/// The memory kind that conduits use for a vendor's devices.
[[nodiscard]] constexpr transport::memory_kind kind_of(vendor made_by) {
    return made_by == vendor::cuda  ? transport::memory_kind::cuda
           : made_by == vendor::hip ? transport::memory_kind::hip
                                    : transport::memory_kind::host;
}

/// One device. Valid as long as its `accelerators` object.
struct accelerator {
    vendor made_by = vendor::none;
    device::device_id id;
    device::backend *backend = nullptr;
    device::stream_pool *streams = nullptr;
};

/// One side of a copy within this process: a pointer and the device that it belongs to.
struct device_ptr {
    std::byte *address = nullptr;
    const accelerator *on = nullptr; ///< null: host memory
};

/// Thread-safe.
class accelerators {
public:
    struct options {
        std::string cuda_library; ///< see device::library_path_option
        std::string hip_library;
        int max_active_streams = 32; ///< per device
    };

    explicit accelerators(options chosen) : options_(std::move(chosen)) {}

    /// From now on devices of services are found, which outlive this object.
    void use_services(service_devices &all);

    /// Finds a device by LLVM's name for its plugin. nullptr: a host plugin, or the vendor's
    /// library cannot be used (logged once).
    const accelerator *find(const std::string &plugin, int plugin_device);
    /// Finds the device with this UUID, whether or not the program has used it. nullptr: it is not
    /// visible to this process.
    const accelerator *find(vendor made_by, const device::device_uuid &uuid);

    /// Returns the address by which copies use memory of a device that did not come from its
    /// backend. Errors: OMPX_ERR_NOMEM.
    result<std::byte *> register_memory(const accelerator &on, void *address, std::size_t nbytes);

    /// All devices of a vendor. Empty without devices or without the vendor's library, which is not
    /// logged. The span stays valid.
    std::span<const accelerator> all_of(vendor made_by);

    /// Polls all copies in flight once; true if there are none. Does not block. An error belongs to
    /// a copy whose failure has not been reported yet.
    result<bool> poll();

private:
    struct vendor_state {
        std::unique_ptr<device::backend> backend;
        std::unique_ptr<device::stream_pool> streams;
        std::vector<accelerator> devices; ///< [device]
        bool failed = false;
    };

    /// Loads the vendor's library on first use. nullptr: it cannot be used; logged once if
    /// `warn_if_missing`.
    vendor_state *load(vendor of, bool warn_if_missing);
    result<std::unique_ptr<device::backend>> make_backend(vendor of);

    options options_;
    std::mutex mutex_; ///< guards the members below
    std::map<vendor, vendor_state> vendors_;
    /// [vendor] Read by poll() without the mutex, since fences poll in a loop.
    std::array<std::atomic<device::stream_pool *>, 4> pools_{};
    service_devices *services_ = nullptr;
    service_backend *of_services_ = nullptr;
};

} // namespace diomp::offload
