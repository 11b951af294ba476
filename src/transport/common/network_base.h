// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Base of all networks. Owns the parts that they share: a thread that makes progress while no other
// thread polls, the queue of received messages, the detection of unresponsive peers, and the report
// of each lost peer.
#pragma once

#include "transport/common/backoff.h"
#include "transport/common/failure_reporter.h"
#include "transport/common/idle_waiters.h"
#include "transport/common/liveness.h"
#include "transport/common/message_queue.h"
#include "transport/common/network_driver.h"
#include "transport/common/network_thread.h"
#include "transport/common/poller_count.h"
#include "transport/network.h"
#include "transport/options.h"

namespace diomp::launch {
class launcher;
}

namespace diomp::transport {

class network_base : public network, protected network_driver {
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
    bool idle_wait(std::chrono::microseconds limit, function_ref<bool()> is_over) final {
        return idle_waiters_.wait(limit, is_over);
    }
    void wake_idle_waiters() final { idle_waiters_.wake(); }
    [[nodiscard]] bool has_messages() const override { return arrivals_.has_messages(); }
    void report_failures_to(const failure_handler &handle) final { failures_.set_handler(handle); }
    [[nodiscard]] std::string describe_outstanding() const override {
        return describe_awaited(known_peers());
    }
    status close() override;
    void freeze() override {}

protected:
    network_base(launch::launcher &launcher, const conduit_options &options, doorbell ring)
        : launcher_(launcher), ring_(std::move(ring)), liveness_(options.dead_peer_timeout_s),
          idle_waiters_(*this, poller_count_) {}

    /// Starts the network thread, which sleeps on `event_fd`; -1: there is no descriptor to sleep
    /// on.
    status start_thread(int event_fd);
    /// Call first in the derived class's destructor: the thread uses all members.
    void stop_thread() { thread_.reset(); }

    /// Part of poll() after the progress call; `moved`: progress did something.
    int dispatch(bool moved, message_handler handle) {
        poller_count_.note_poll();
        if (moved) {
            idle_waiters_.note_progress();
        }
        if (!arrivals_.has_messages()) {
            return moved ? 1 : 0; // serving puts and gets of other ranks counts as busy
        }
        int const handled = arrivals_.dispatch([&](const message &each) {
            handle(each);
            note_handled(each);
        });
        return handled == 0 && moved ? 1 : handled;
    }
    /// Declares a peer lost. Any thread, without locks.
    void fail_peer(network_peer &lost, const std::string &why);
    [[nodiscard]] launch::launcher &launcher() { return launcher_; }
    [[nodiscard]] arrivals &arrived() { return arrivals_; }

private:
    launch::launcher &launcher_;
    doorbell ring_;
    liveness liveness_;
    poller_count poller_count_;
    idle_waiters idle_waiters_;
    arrivals arrivals_;
    failure_reporter failures_;
    std::unique_ptr<network_thread> thread_;
};

} // namespace diomp::transport
