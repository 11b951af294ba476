// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What ranks of one node do through shared memory: they send messages, sleep and wake each other,
// and copy from each other's private memory. All calls are thread-safe.
#pragma once

#include "transport/active_messages.h"

namespace diomp::transport {

/// How this rank's threads sleep until there is work.
class sleep_control {
public:
    virtual ~sleep_control() = default;

    /// Changes whenever a sleeping thread is woken. Read it before looking for work.
    [[nodiscard]] virtual std::uint32_t activity() const = 0;
    /// Sleeps until activity() differs from `seen` or the time is over. May return early.
    virtual void sleep(std::uint32_t seen, std::chrono::microseconds limit) = 0;
    /// Ends sleep() of this rank's threads.
    virtual void wake() = 0;
    /// Between these two calls the calling thread polls, so that senders need not wake a sleeping
    /// thread. end_polling returns true if messages are waiting for which no thread was woken.
    virtual void begin_polling() = 0;
    [[nodiscard]] virtual bool end_polling() = 0;
    /// Sleeps like sleep(), in a thread that waits for an operation and does not poll meanwhile.
    /// Calls ready() first; returns true at once if ready() does. With wait_kind::store the sleep
    /// also ends when another rank calls wake_for_store(). wake() of this rank may fail to end it;
    /// then it lasts until `limit`.
    virtual bool idle_wait(wait_kind what, std::uint32_t seen, std::chrono::microseconds limit,
                           function_ref<bool()> ready) = 0;
    /// Ends idle_wait(): another thread of this rank has done something that a thread may wait for.
    virtual void wake_idle_waiters() = 0;
    /// Ends idle_wait() of the peer's threads that wait for a store.
    virtual void wake_for_store(world_rank peer) = 0;
};

/// Registered private memory of direct peers. Both calls block until the bytes have arrived.
/// OMPX_ERR_UNSUPPORTED if the system forbids it or the peer is not direct: the caller falls back
/// to messages.
class private_memory {
public:
    virtual ~private_memory() = default;

    virtual status write_private(world_rank peer, std::uint64_t remote_address, const void *source,
                                 std::size_t nbytes) = 0;
    virtual status read_private(world_rank peer, std::uint64_t remote_address, void *destination,
                                std::size_t nbytes) = 0;
};

/// Fixed at creation.
struct node_capabilities {
    const char *name = "";
    std::size_t max_message_bytes = 240; ///< payload of an active message, at least 240
    /// Number of threads of this node that sleep until another rank stores something. A rank that
    /// has written memory which another rank may wait for reads the number after its store, and
    /// calls wake_for_store() if it is not 0. There is no fence between the store and the load: it
    /// would cost more than the rest of the operation. So the writer may miss a thread that begins
    /// to sleep at that moment, which then sleeps until its limit.
    const std::atomic<std::uint32_t> *store_sleepers = nullptr;
};

class node_transport : public active_messages, public sleep_control, public private_memory {
public:
    [[nodiscard]] const node_capabilities &caps() const { return caps_; }

protected:
    node_capabilities caps_; ///< set by the constructor of the derived class
};

} // namespace diomp::transport
