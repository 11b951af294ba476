// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The stream pool of DiOMP-Offloading (2025): concurrent copies of one device, each on its own
// queue. Queues are created on demand and reused; there are at most `max_active` per device. When
// all of them are busy, the caller waits for the older half.
//
// Each queue carries one copy at a time (or the work of one `start` call), so an idle queue means a
// finished copy and no event objects are needed.
#pragma once

#include "base/function_ref.h"
#include "device/device.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace diomp::device {

/// The completion of a copy. A default-constructed ticket is complete. Cheap to copy; may outlive
/// the pool, which is needed only for queries.
class ticket {
public:
    ticket() = default;

private:
    friend class stream_pool;
    struct state;
    explicit ticket(std::shared_ptr<state> of) : state_(std::move(of)) {}
    std::shared_ptr<state> state_;
};

/// Thread-safe. Each device has one mutex, which guards its queues and their state. It is a leaf
/// lock, and it is not held while a queue copies, waits, is created or is destroyed. Threads
/// therefore wait for a device only in calls documented to block.
class stream_pool {
public:
    struct options {
        int max_active = 32; ///< queues per device (MAX_ACTIVE_STREAMS of the papers); at least 1
    };
    struct pool_statistics {
        std::uint64_t created = 0; ///< queues
        std::uint64_t reused = 0;  ///< copies on a queue that had been used before
        std::uint64_t half_synchronisations = 0;
        std::uint64_t failed = 0; ///< queues discarded after an error
    };

    /// The backend must outlive the pool.
    stream_pool(backend &of, options chosen);
    /// Waits for all work in flight and logs unreported failures. No other call may be in progress.
    ~stream_pool();
    stream_pool(const stream_pool &) = delete;
    stream_pool &operator=(const stream_pool &) = delete;

    /// Starts a copy on a queue of `device`. Both ranges must stay valid until it is done. Copies
    /// are not ordered with respect to each other. Blocks only if all queues are busy and their
    /// number is at the limit: then it waits for the older half of them, or for the thread that
    /// already does. An error: this copy was not started.
    result<ticket> copy(device_id device, void *dst, const void *src, std::size_t nbytes);

    /// Starts all operations that `work` enqueues, in order; the pool treats them as one copy. If
    /// `work` fails after enqueuing a part, waits for the queue.
    result<ticket> start(device_id device, function_ref<status(queue &)> work);

    /// Whether the copy is complete. Does not block. An error belongs to this copy and is returned
    /// by later calls as well.
    result<bool> is_done(const ticket &of);

    /// Polls all work in flight once; true if there is none. Does not block. An error belongs to a
    /// copy whose failure is_done has not returned. Each failure is reported once, here or by
    /// drain, so polling until the result is true reports all.
    result<bool> poll();

    /// Blocks until all copies have completed whose start returned before this call began. Reports
    /// errors like poll. No timeout, see queue::wait.
    status drain();

    [[nodiscard]] pool_statistics counted() const;

private:
    struct inflight_work;
    struct device_streams;

    result<std::unique_ptr<queue>> acquire(device_streams &on);

    backend &backend_;
    options const options_;
    std::vector<std::unique_ptr<device_streams>> devices_; ///< [device]; fixed after construction
};

} // namespace diomp::device
