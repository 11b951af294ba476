// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Atomic operations on words of other ranks' GPUs. No processor, and no network adapter, can change
// a word of a GPU so that it is atomic for the kernels that run there. So the owner executes them,
// by a kernel of one thread on its GPU: several that have arrived in one launch.
#pragma once

#include "base/result.h"
#include "device/device.h"
#include "messaging/request.h"
#include "offload/accelerators.h"
#include "offload/internal/segment_table.h"
#include "offload/internal/service_queue.h"
#include "transport/types.h"

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace diomp::messaging {
class call_service;
class engine;
} // namespace diomp::messaging

namespace diomp::offload {

/// The word of a rank's GPU that is to be updated.
struct remote_word {
    world_rank rank;
    int device = 0; ///< the owner's number
    device::word_update update;
};

/// Both sides: requests of this rank, and the thread that executes those of other ranks. Any
/// thread. Create before engine.start(); destroy after the engine has stopped.
class word_updates {
public:
    word_updates(const segment_table &own, messaging::engine &engine,
                 messaging::call_service &calls);
    ~word_updates();
    word_updates(const word_updates &) = delete;
    word_updates &operator=(const word_updates &) = delete;

    /// Creates now what updates of words of an own device need: drivers may wait for running
    /// kernels before they load one or pin memory. A failure is logged; updates return it later.
    void prepare(const accelerator &on);

    /// Updates a word; returns its old value.
    result<std::uint64_t> fetch(const remote_word &what);
    /// Starts an update; blocks while too many have started. Those of this rank for one owner are
    /// executed in their order.
    /// `on_failure` is called by a thread that handles messages, and must not block.
    status start(const remote_word &what, std::function<void(const error &)> on_failure);
    /// Waits until all updates of start() have been executed.
    status wait();
    /// Updates a word of an own device; returns its old value.
    result<std::uint64_t> apply(const accelerator &on, const device::word_update &what);

private:
    struct update_request {
        messaging::request_header header;
        device::word_update update;
        std::int32_t device = 0;
    };
    struct update_reply {
        std::uint64_t old_value = 0;
        std::int32_t failure = 0;
    };
    struct update_job {
        world_rank requester;
        update_request args;
    };
    /// What launches on a device need.
    struct device_lane {
        std::unique_ptr<device::queue> queue;
        device::pinned_memory old_values;
    };

    void on_request(const transport::message &incoming);
    void serve(); ///< runs in the thread
    /// The device of a request whose word is in an allocation.
    result<const accelerator *> find(const update_request &args) const;
    /// Executes jobs of one device, at most queue::max_updates, and replies.
    void execute(const accelerator &on, std::span<const update_job> jobs);
    /// Returns the old values, which the next launch overwrites. Under the mutex.
    result<std::span<const std::uint64_t>> launch(const accelerator &on,
                                                  std::span<const device::word_update> updates);
    void refuse(const update_job &what, const error &why);
    static error failure_of(const remote_word &what, int code);

    const segment_table &own_;
    messaging::engine &engine_;
    messaging::call_service &calls_;
    transport::handler_id handler_;
    std::atomic<int> num_started_{0}; ///< by start(), and not executed yet
    std::mutex mutex_;                ///< guards the lanes; held during launches
    std::map<const accelerator *, device_lane> lanes_;
    service_queue<update_job> jobs_; ///< last: its thread uses the members above
};

} // namespace diomp::offload
