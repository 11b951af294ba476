// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Device segments of other ranks of the node, mapped into this process (device IPC), so that an own
// device can copy from and to them. A segment is opened on first use and extended when its owner
// commits more.
#pragma once

#include "base/result.h"
#include "offload/accelerators.h"
#include "offload/internal/segment_table.h"
#include "transport/types.h"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

namespace diomp::messaging {
class call_service;
class engine;
} // namespace diomp::messaging

namespace diomp::offload {

/// An extent of a segment: [offset, offset + nbytes).
struct peer_extent {
    std::uint64_t offset = 0;
    std::uint64_t nbytes = 0;
};

/// A segment of another rank, as far as this process has mapped it.
struct peer_view {
    std::byte *base = nullptr; ///< of the segment, in this process
    std::vector<peer_extent> extents;
};

/// Thread-safe. Create before engine.start().
class peer_segments {
public:
    peer_segments(const segment_table &own, accelerators &devices, messaging::engine &engine,
                  messaging::call_service &calls);

    struct opened {
        std::byte *address = nullptr;    ///< address in this process
        const accelerator *by = nullptr; ///< the device whose queues can access it
    };
    /// Maps [offset, offset + nbytes) of the segment of `owner`'s device, for copies from or to
    /// memory of `local` (null: host memory). Asks the owner on first use and when it has committed
    /// more. OMPX_ERR_UNSUPPORTED: no device of this process can access it.
    result<opened> open(world_rank owner, int device, std::uint64_t offset, std::size_t nbytes,
                        const accelerator *local);

    using extent = peer_extent;
    using view = peer_view;
    /// Maps all memory that the owner has committed so far, for kernels of `by`.
    /// OMPX_ERR_UNSUPPORTED: `by` cannot access it, or there is none.
    result<view> open_all(world_rank owner, int device, const accelerator &by);

private:
    struct share_request;
    struct share_reply;
    struct extent_header;
    using key = std::tuple<int, int, const accelerator *>; ///< rank, device of the rank, local
    struct entry {
        const accelerator *by = nullptr;
        std::unique_ptr<device::peer_memory> memory;
        std::vector<extent> extents; ///< in the owner's order of committing
        bool unreachable = false;    ///< no device of this process can access it
    };
    struct shared_segment {
        vendor made_by = vendor::none;
        device::device_uuid uuid{};
        device::shared_handle handle;
    };

    [[nodiscard]] static bool covers(const entry &of, std::uint64_t offset, std::size_t nbytes);
    result<shared_segment> request_share(world_rank owner, int device, std::size_t num_known);
    const accelerator *choose(const shared_segment &of, const accelerator *local);
    status map_extents(entry &of, const shared_segment &more, const accelerator *local);
    void on_share_request(const transport::message &incoming);

    const segment_table &own_;
    accelerators &accelerators_;
    messaging::call_service &calls_;
    transport::handler_id share_handler_;
    std::mutex mutex_; ///< guards the members below; held while the owner is asked, never taken in
                       ///< handlers
    std::map<key, entry> entries_;
    std::uint64_t num_requests_ = 0;
};

} // namespace diomp::offload
