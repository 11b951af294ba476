// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A network reaches the ranks of other nodes.
//
// To add a network: a folder beside tcp/, a row in create.cpp, the contract tests
// (tests/transport); docs/conduits.md has the steps.
#pragma once

#include "transport/active_messages.h"
#include "transport/rma_transport.h"

namespace diomp::transport {

/// Called by any thread when messages wait that no thread may be polling for: wakes a thread that
/// polls.
using doorbell = std::function<void()>;

/// How threads share the progress of a network. All calls are thread-safe.
class network_progress {
public:
    virtual ~network_progress() = default;

    /// Between these two calls the network leaves progress to the calling thread, which polls, or
    /// sleeps in idle_wait() if the network can.
    virtual void begin_polling() = 0;
    virtual void end_polling() = 0;
    /// Sleeps until there is work, the time is over or wake_idle_waiters() is called. Does not
    /// sleep if is_over() is true; a thread that calls wake_idle_waiters() makes it true before.
    /// False: this network cannot sleep.
    virtual bool idle_wait(std::chrono::microseconds limit, function_ref<bool()> is_over) = 0;
    /// Ends idle_wait().
    virtual void wake_idle_waiters() = 0;
};

/// The peers of a network: their paths, their loss, and the end. All calls are thread-safe.
class network_peers {
public:
    virtual ~network_peers() = default;

    /// Call before the first transfer.
    virtual void report_failures_to(const failure_handler &handle) = 0;
    /// The path to this peer and the reason for its choice, for diomp-info: "ucx (tcp, active
    /// messages): ...".
    [[nodiscard]] virtual std::string describe_path(world_rank peer) const = 0;
    /// Operations outstanding at each peer, with its host, as the end of a sentence about a long
    /// wait: "rank 1 on hostb: 1 get(s) of 8 bytes". "" if there are none.
    [[nodiscard]] virtual std::string describe_outstanding() const = 0;
    /// Collective over the job. Call once, when no thread starts operations any more: all data sent
    /// has then arrived, so that ranks may end in any order. Blocks.
    virtual status close() = 0;
    /// Called when the process ends while other threads may still be in calls. After it no thread
    /// is inside the library of a network's vendor, whose destructors are about to run, and none
    /// enters it. Calls of other threads may never return. Blocks for a moment.
    virtual void freeze() = 0;
};

/// What a network supports, fixed when it has been created. The layers above choose protocols by it
/// and emulate what is missing.
struct network_capabilities {
    const char *name = "";
    /// Payload of an active message, equal on all ranks. At least 240.
    std::size_t max_message_bytes = 240;
    /// Data up to this size can always be sent by send_long, at once or after a retry; equal on all
    /// ranks. 0: no size is guaranteed.
    std::size_t max_am_long = 0;
    /// idle_wait() sleeps, and ends when any thread has made progress.
    bool wakes_idle_waits = false;
    /// device_transfers between any memory that the network can access in the two processes.
    bool transfers_any_device_memory = false;
    row_transfers *rows = nullptr;      ///< nullptr: the caller transfers row by row
    network_atomics *atomics = nullptr; ///< nullptr: none
    device_transfers *device = nullptr; ///< nullptr: host memory only
};

class network : public rma_transport,
                public active_messages,
                public am_long_transport,
                public network_progress,
                public network_peers {
public:
    [[nodiscard]] const network_capabilities &caps() const { return caps_; }

protected:
    network_capabilities caps_; ///< set by the derived class until it has been created
};

} // namespace diomp::transport
