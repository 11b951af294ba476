// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The stream pool of DiOMP-Offloading (2025): copies of one device run side by side, each on a
// queue of its own. Queues are made on demand and used again; there are at most `max_active` per
// device. When all of them are busy, the older half is waited for and the work goes on.
//
// Each queue carries one copy at a time (or what a caller of `start` puts on it), so that an idle
// queue means a finished copy and no event objects are needed.
#pragma once

#include "base/function_ref.h"
#include "device/device.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace diomp::device {

/// A copy's completion. A default one is done. Cheap to copy; may outlive the pool, which must be
/// there for questions.
class ticket {
public:
    ticket() = default;

private:
    friend class stream_pool;
    struct state;
    explicit ticket(std::shared_ptr<state> of) : state_(std::move(of)) {}
    std::shared_ptr<state> state_;
};

/// Any thread. There is one mutex per device; it guards that device's queues and everything said of
/// them, is a leaf (nothing else is locked under it), and is never held while a queue copies,
/// waits, is made or is destroyed. So a thread waits for a device only where a call says so.
class stream_pool {
public:
    struct options {
        int max_active = 32; ///< queues per device (MAX_ACTIVE_STREAMS of the papers); at least 1
    };
    struct statistics {
        std::uint64_t created = 0; ///< queues
        std::uint64_t reused = 0;  ///< copies on a queue that had carried another
        std::uint64_t half_synchronisations = 0;
        std::uint64_t failed = 0; ///< queues given up
    };

    /// The backend must outlive the pool.
    stream_pool(backend &of, options chosen);
    /// Waits for everything in flight; failures that nobody was told go to the log. No other call
    /// may be under way.
    ~stream_pool();
    stream_pool(const stream_pool &) = delete;
    stream_pool &operator=(const stream_pool &) = delete;

    /// Starts a copy on a queue of `device`. Both ranges stay valid until it is done. Copies are
    /// not ordered among each other. Blocks only if all queues are busy and their number is at the
    /// limit: then it waits for the older half of them, or for the thread that is doing so already.
    /// An error: this copy was not started.
    result<ticket> copy(device_id device, void *dst, const void *src, std::size_t nbytes);

    /// The same with all that `work` puts on the queue, in order; to the pool it is one copy. If it
    /// fails, so that not all of it was started, the queue is waited for.
    result<ticket> start(device_id device, function_ref<status(queue &)> work);

    /// Whether the copy is complete. Does not block. An error is about this copy, and is the answer
    /// to every later question as well.
    result<bool> is_done(const ticket &of);

    /// Looks once at everything in flight; true: nothing is. Does not block. An error is about a
    /// copy whose holder has not been told by is_done; each is told once, here or by drain, so a
    /// caller who polls until it says true hears of all.
    result<bool> poll();

    /// Blocks until all copies are complete whose call had returned before this one began; the rest
    /// as poll. Without limit of time, as queue::wait.
    status drain();

    [[nodiscard]] statistics counted() const;

private:
    struct flight;
    struct lane;

    result<std::unique_ptr<queue>> acquire(lane &on);

    backend &backend_;
    options const options_;
    std::vector<std::unique_ptr<lane>> lanes_; ///< [device]; fixed after construction
};

} // namespace diomp::device
