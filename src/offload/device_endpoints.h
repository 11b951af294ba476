// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The endpoints of this rank's GPUs: records in device memory by which calls in target regions
// (include/diomp/device.h) find the memory of all ranks. libomptarget stores the address of a
// record in the images that make calls, and has the record updated before each region.
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "diomp/device_endpoint.h"
#include "diomp/types.h"
#include "offload/internal/region_error.h"
#include "offload/internal/segment_table.h"
#include "transport/types.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace diomp::launch {
struct job_info;
}

namespace diomp {
enum class device_call_paths : std::uint8_t;
}

namespace diomp::messaging {
class call_service;
class engine;
} // namespace diomp::messaging

struct diomp_offload_request;

namespace diomp::transport {
class arena;
}

namespace diomp::offload {

class alloc_directory;
class device_segments;
class endpoint_record;
class path_selector;
class region_proxy;
class request_executor;
struct group_members;

/// Thread-safe. Create before engine.start().
class device_endpoints {
public:
    device_endpoints(device_segments &segments, alloc_directory &directory, path_selector &paths,
                     messaging::engine &engine, messaging::call_service &calls,
                     const transport::arena &arena, const launch::job_info &job,
                     std::unique_ptr<request_executor> executor, device_call_paths calls_by);
    ~device_endpoints();
    device_endpoints(const device_endpoints &) = delete;
    device_endpoints &operator=(const device_endpoints &) = delete;

    /// See request_executor::set_groups.
    void set_groups(std::function<result<group_members>(ompx_group_t)> find);
    /// See barrier_groups::forget.
    void forget_group(std::uint64_t id);
    /// Whether a region may make requests to the proxy thread: end() must follow then.
    enum class requests : bool { forbidden, allowed };
    /// Creates the record of a device, or updates it if ranks of the node have committed memory
    /// since; waits for replies of those. Call before each region. Returns the record's address in
    /// device memory; 0: the device has none.
    std::uint64_t begin(const diomp_offload_request &of, requests by_region);
    /// Call once after each region for which begin() has returned an address: blocks until its
    /// requests have been executed.
    status end(int device);
    /// The first error of a call in the device's regions since the last call.
    std::optional<region_error> take_error(int device);
    /// Ends all waits in regions: the job is broken. Any thread, also a handler.
    void break_waits(int status);

private:
    struct locate_request;
    struct locate_reply;
    struct known_device {
        std::unique_ptr<endpoint_record> record;
        bool was_refused = false; ///< the record could not be created
        int numa_node = -1;       ///< nearest to the device; -1: unknown
    };

    void on_locate(const transport::message &incoming);
    /// Creates or updates the record; null: the device has none.
    endpoint_record *prepare(const diomp_offload_request &of);
    [[nodiscard]] world_rank self() const { return world_rank(common_.rank); }
    result<std::unique_ptr<endpoint_record>> create(device_segment &segment) const;
    void find_node_peers();
    /// Updates what the record says about ranks whose memory has grown.
    void update_peers(endpoint_record &of, const device_segment &segment);
    status update_peer(endpoint_record &of, const device_segment &segment, world_rank peer);

    device_segments &segments_;
    alloc_directory &directory_;
    path_selector &paths_;
    messaging::call_service &calls_;
    diomp_endpoint common_{}; ///< what all records have in common
    transport::handler_id locate_handler_;
    std::mutex mutex_; ///< guards the members below; held while other ranks are asked, never taken
                       ///< in handlers
    std::array<known_device, max_devices> devices_; ///< [device]
    std::vector<world_rank> node_peers_; ///< other ranks of the node; found with the first record
    /// [device] Read without the mutex by break_waits, which must not block.
    std::array<std::atomic<endpoint_record *>, max_devices> live_{};
    std::unique_ptr<region_proxy> proxy_;
};

} // namespace diomp::offload
