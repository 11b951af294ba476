// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "base/result.h"
#include "diomp/types.h"
#include "launch/launch.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

namespace diomp::rma {
class transfers;
}

struct diomp_offload_request;

namespace diomp::transport {
class arena;
}

namespace diomp::offload {

class alloc_directory;
class device_segment;
class device_segments;
class inflight_guard;
class pinned_host;
class segment_memory;

/// Allocates memory in device segments, and frees it once no transfer and no other rank uses it.
/// Thread-safe.
class device_allocator {
public:
    device_allocator(device_segments &segments, alloc_directory &directory,
                     const transport::arena &arena, rma::transfers &transfers, pinned_host &pins,
                     const launch::job_info &job);
    ~device_allocator();

    // Calls by libomptarget; see table.h.
    void *allocate(const diomp_offload_request &request);
    bool release(int device, void *address);
    /// Call before libomptarget frees memory of its own, the size of which is unknown.
    void before_release(const void *address);

    /// Allocates memory of a kind of ompx_target_alloc and returns its offset. For `number` see
    /// device_allocation.
    result<std::uint64_t> allocate_kind(int device, ompx_mem_kind_t kind, std::size_t nbytes,
                                        std::uint64_t number);
    /// Creates the segment of an accelerator, for an owner in another process that keeps its heap:
    /// here all of it is allocated, as symmetric and as mapped memory. Null: the device has none.
    device_segment *lend_segment(const diomp_offload_request &request, std::uint64_t preferred);
    /// Frees an allocation. Waits for own device transfers, and for the sharers to invalidate their
    /// entries.
    status deallocate(device_segment &segment, std::uint64_t offset);

    /// Transfers that still use memory of own devices.
    [[nodiscard]] inflight_guard &inflight() { return *inflight_; }

private:
    /// Lets other ranks know that the device has more memory than before.
    void publish_growth(segment_memory &of);
    status wait_inflight_of(const device_segment &segment, std::uint64_t offset);

    device_segments &segments_;
    alloc_directory &directory_;
    const transport::arena &arena_;
    pinned_host &pins_;
    world_rank self_;
    local_rank local_rank_;
    std::unique_ptr<inflight_guard> const inflight_;
    std::atomic<bool> has_warned_{false};
    std::mutex lending_mutex_; ///< serialises lend_segment
};

} // namespace diomp::offload
