// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Base of all networks: a thread that makes progress while no other thread polls, the queue of
// received messages, the detection of unresponsive peers, and the report of each lost peer.
#pragma once

#include "launch/launch.h"
#include "transport/common/backoff.h"
#include "transport/common/liveness.h"
#include "transport/common/message_queue.h"
#include "transport/common/network_peer.h"
#include "transport/common/network_thread.h"
#include "transport/common/poller_count.h"
#include "transport/create.h"
#include "transport/network.h"

namespace diomp::transport {

class network_base : public network {
public:
    void set_am_long_handler(const am_long_handler &handle,
                             const recv_buffer_callback &find_buffer) override {
        arrivals_.set_am_long_handler(handle, find_buffer);
    }
    /// Networks that move data to chosen buffers, or put with a message, override these.
    void revoke_recv_buffer(const std::byte * /*buffer*/) override {}
    result<bool> put_with_message(world_rank /*peer*/, std::uint64_t /*remote_address*/,
                                  std::span<const std::byte> /*source*/, handler_id /*handler*/,
                                  std::span<const std::byte> /*payload*/,
                                  completion & /*source_free*/) override {
        return false;
    }
    /// Wakes the network thread: there is work for it. Any thread.
    void wake() { thread_->wake(); }
    void begin_polling() final { poller_count_.begin(); }
    void end_polling() final {
        poller_count_.end();
        wake();
    }
    bool idle_wait(std::chrono::microseconds limit, function_ref<bool()> is_over) final;
    void wake_idle_waiters() final;
    [[nodiscard]] bool has_messages() const override { return arrivals_.has_messages(); }
    void report_failures_to(const failure_handler &handle) final;
    [[nodiscard]] std::string describe_outstanding() const override {
        return describe_awaited(known_peers());
    }
    status close() override;
    void freeze() override {}

protected:
    network_base(launch::launcher &launcher, const conduit_options &options, doorbell ring)
        : launcher_(launcher), ring_(std::move(ring)), timeout_s_(options.dead_peer_timeout_s),
          liveness_(options.dead_peer_timeout_s) {}

    /// Starts the network thread, which sleeps on `event_fd`; -1: there is no descriptor to sleep
    /// on.
    status start_thread(int event_fd);
    /// Call first in the derived class's destructor: the thread uses all members.
    void stop_thread() { thread_.reset(); }

    void note_poll() { poller_count_.note_poll(); }
    /// Part of poll() after the progress call; `moved`: progress did something.
    int dispatch(bool moved, message_handler handle) {
        note_poll();
        note_moved(moved);
        if (!arrivals_.has_messages() || receiving_.test_and_set(std::memory_order_acquire)) {
            return moved ? 1 : 0; // serving puts and gets of other ranks counts as busy
        }
        return dispatch_messages(handle);
    }
    /// Declares a peer lost. Any thread, without locks.
    void fail_peer(network_peer &lost, const std::string &why);

    /// Prepares for sleeping on the descriptor. False: there is work. One thread at a time.
    virtual bool arm() { return true; }

    // Called by the network thread:
    /// Makes progress. True if there was work.
    virtual bool serve() = 0;
    /// Maximum milliseconds that the thread may sleep, given the limit of the liveness check; -1:
    /// until an event.
    virtual int max_sleep_ms(int limit_ms) { return limit_ms; }
    virtual void ping(network_peer &silent) = 0;

    // Called by any thread:
    [[nodiscard]] virtual std::vector<network_peer *> known_peers() const = 0;
    /// Fails all operations that wait for the peer; see network_peer::fail.
    virtual std::string fail(network_peer &lost, const std::string &why) { return lost.fail(why); }
    /// Sends credit to the sender from time to time. Not needed by networks whose messages do not
    /// pass through arrived().
    virtual void note_handled(const message & /*each*/) {}
    /// Returns when everything sent has arrived, except to lost peers.
    virtual status drain() = 0;

    [[nodiscard]] launch::launcher &launcher() { return launcher_; }
    [[nodiscard]] arrivals &arrived() { return arrivals_; }

private:
    int dispatch_messages(message_handler handle);
    int check_peers();
    bool arm_locked();
    /// After progress the descriptor is polled again.
    void note_moved(bool moved) {
        if (moved && had_spurious_wakeup_.load(std::memory_order_relaxed)) [[unlikely]] {
            had_spurious_wakeup_.store(false, std::memory_order_relaxed);
        }
    }

    launch::launcher &launcher_;
    doorbell ring_;
    double timeout_s_;
    liveness liveness_;
    poller_count poller_count_;
    std::mutex arm_mutex_;
    int event_fd_ = -1; ///< descriptor on which the thread and idle waiters sleep; -1: none
    unique_fd wake_event_;
    std::atomic<int> num_idle_waiters_{0};
    /// The descriptor ended an idle wait, and there has been no progress since.
    std::atomic<bool> had_spurious_wakeup_{false};
    arrivals arrivals_;
    std::atomic_flag receiving_;
    std::vector<std::byte> messages_in_dispatch_; ///< under receiving_
    std::mutex handler_mutex_;
    failure_handler failure_handler_;
    std::unique_ptr<network_thread> thread_;
};

} // namespace diomp::transport
