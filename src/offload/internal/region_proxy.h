// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The thread that executes what GPUs request from inside target regions. It polls the rings of
// devices on which such a region runs, and sleeps while there is none.
#pragma once

#include "base/function_ref.h"
#include "messaging/engine.h"
#include "offload/internal/region_error.h"
#include "offload/internal/request_executor.h"
#include "offload/internal/segment_table.h"

#include <array>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace diomp {
enum class device_call_paths : std::uint8_t;
}

namespace diomp::offload {

class request_ring;
class request_rings;

/// Thread-safe.
class region_proxy {
public:
    /// The thread may run where the calling thread may run now.
    region_proxy(std::unique_ptr<request_executor> executor, messaging::engine &engine,
                 device_call_paths calls_by);
    /// Ends the thread; blocks until it has executed its current request.
    ~region_proxy();
    region_proxy(const region_proxy &) = delete;
    region_proxy &operator=(const region_proxy &) = delete;

    /// Whether devices may make requests.
    [[nodiscard]] bool takes_requests() const;
    /// Whether devices shall make requests for memory that could be mapped for them, too.
    [[nodiscard]] bool replaces_mappings() const;

    [[nodiscard]] request_executor &executor() const { return *executor_; }

    /// See request_executor::prepare.
    status prepare(const accelerator &on) { return executor_->prepare(on); }
    /// A region starts on a device. If no other runs there, and a thread of an earlier one has
    /// given up a request, or groups have been freed that the device may know, `reset` is called
    /// with these. The rings must outlive this object, and are the same in each call for a device.
    status begin(const requesting_device &on, request_rings &rings,
                 function_ref<status(std::span<const ompx_group_t>)> reset);
    /// See barrier_groups::forget.
    void forget_group(std::uint64_t id);
    /// A region of begin() has ended: blocks until its requests have been executed.
    status end(int number);
    /// The first request that has failed since the last call.
    std::optional<region_error> take_error(int device);

private:
    struct served {
        std::mutex serving; ///< held while requests are executed; taken before mutex_
        requesting_device on;
        request_rings *rings = nullptr;
        int num_regions = 0;                ///< guarded by mutex_
        std::optional<region_error> failed; ///< guarded by mutex_
    };

    void serve(); ///< runs in the thread
    /// Lets the thread run near the devices that it serves.
    void bind();
    bool serve(served &device);
    void execute(served &device, const diomp_request &what, request_ring &ring);

    std::unique_ptr<request_executor> executor_;
    messaging::engine &engine_;
    device_call_paths const calls_by_;
    std::vector<bool> const allowed_; ///< device::processor_set of the thread
    std::mutex mutex_;                ///< leaf lock
    std::condition_variable changed_;
    std::array<served, max_devices> devices_; ///< [device]
    std::atomic<std::uint64_t> active_{0};    ///< bit per device on which regions run
    std::atomic<int> num_ending_{0};          ///< threads in end()
    std::atomic<bool> stopping_{false};
    std::thread thread_; ///< started by the first region; guarded by mutex_
};

} // namespace diomp::offload
