// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// This rank's device segments: created on first use; their memory is handed to libomptarget.
//
// Host devices, which run target regions on the processor, have their segments in the device area
// of the rank's slot in the arena: ranks of the node load and store them, and conduits transfer
// them like host segments. Accelerators have their own memory: their segments are reserved there,
// and their queues copy.
#pragma once

#include "base/result.h"
#include "offload/accelerators.h"
#include "offload/internal/segment_table.h"
#include "offload/openmp.h"

#include <atomic>
#include <bitset>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace diomp::launch {
struct job_info;
}

namespace diomp::memory {
class address_space;
}

namespace diomp::messaging {
class engine;
}

namespace diomp::transport {
class arena;
}

struct diomp_offload_request;

namespace diomp::rma {
class transfers;
}

namespace diomp::offload {

class preregistered_segments;
class remote_memory;

/// Thread-safe.
class device_segments {
public:
    /// Host devices per rank that can have a segment: LLVM's host plugin has this many.
    static constexpr int num_host_devices = 4;
    /// Minimum size of a host device's segment if the user sets none.
    static constexpr std::size_t min_segment_bytes = std::size_t{64} << 20;

    /// `accelerator_bytes`: size of an accelerator's segment; 0: chosen by device.
    device_segments(const openmp_devices &openmp, const memory::address_space &space,
                    const transport::arena &arena, messaging::engine &engine,
                    rma::transfers &transfers, preregistered_segments &preregistered,
                    const launch::job_info &job, std::size_t accelerator_bytes);
    /// Leaks the memory of accelerators that the program or the network still uses.
    ~device_segments();

    [[nodiscard]] accelerators &devices();
    /// See openmp_devices::remote.
    [[nodiscard]] remote_memory *remote() const { return openmp_.remote(); }
    /// Whether a device belongs to another host.
    [[nodiscard]] bool is_remote(int device) const {
        return openmp_.remote_device_error(device).has_value();
    }
    /// The segments that exist.
    [[nodiscard]] segment_table &table() { return table_; }
    [[nodiscard]] const segment_table &table() const { return table_; }
    /// Creates the segment of the device unless it exists; nullptr: it cannot have one. That of an
    /// accelerator at the address `preferred` if it can; 0: anywhere.
    device_segment *make(const diomp_offload_request &request, std::uint64_t preferred = 0);
    /// The segment of a device, which is started if necessary.
    result<device_segment *> segment_of(int device);
    /// The accelerator that holds the memory of an own device; null: the processor loads it, or it
    /// has no segment.
    const accelerator *accelerator_of(int device);

    /// The error for a device whose memory is not in the address space.
    [[nodiscard]] error no_segment_error(int device) const;
    /// Records an allocation that other ranks cannot access.
    void count_unreachable() { num_unreachable_.fetch_add(1, std::memory_order_relaxed); }

    /// Whether this address is or was in an accelerator's segment, also after the runtime has
    /// ended. Such memory is never libomptarget's own.
    static bool was_segment_memory(const void *address);

private:
    std::unique_ptr<device_segment> make_on_host(const diomp_offload_request &request);
    std::unique_ptr<device_segment> make_on_remote_device(const diomp_offload_request &request);
    std::unique_ptr<device_segment> make_on_accelerator(const diomp_offload_request &request,
                                                        std::uint64_t preferred);

    const openmp_devices &openmp_;
    segment_table table_;
    messaging::engine &engine_;
    rma::transfers &transfers_;
    preregistered_segments &preregistered_;
    int num_local_; ///< ranks of the node
    std::size_t accelerator_bytes_;
    std::span<std::byte> host_area_; ///< for segments of host devices
    std::atomic<std::uint64_t> num_unreachable_{0};
    std::mutex creation_mutex_;        ///< serialises the creation of segments
    std::bitset<max_devices> refused_; ///< devices that have no space for a segment
    std::vector<std::unique_ptr<device_segment>> owned_;
};

} // namespace diomp::offload
