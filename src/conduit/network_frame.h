// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What all networks do alike: a thread serves while nobody polls, messages that have come wait and
// are handed over, peers that fall silent are given up, and the job is told once.
#pragma once

#include "conduit/attendance.h"
#include "conduit/backoff.h"
#include "conduit/message_queue.h"
#include "conduit/network.h"
#include "conduit/network_peer.h"
#include "conduit/network_thread.h"
#include "conduit/watch.h"
#include "launch/launch.h"

namespace diomp::conduit {

class network_frame : public network {
public:
    void receive_bulk_with(const bulk_sink &sink, const bulk_placer &placer) override {
        arrivals_.receive_bulk_with(sink, placer);
    }
    void begin_polling() final { attendance_.begin(); }
    void end_polling() final {
        attendance_.end();
        nudge();
    }
    bool nap(std::chrono::microseconds limit, function_ref<bool()> is_over) final;
    void wake_napping() final;
    [[nodiscard]] bool has_messages() const override { return arrivals_.has_messages(); }
    void report_failures_to(const failure_sink &sink) final;
    [[nodiscard]] std::string describe_outstanding() const override {
        return describe_awaited(known_peers());
    }
    status close() override;

protected:
    network_frame(launch::launcher &launcher, const conduit_options &options, doorbell ring)
        : launcher_(launcher), ring_(std::move(ring)), timeout_s_(options.dead_peer_timeout_s),
          watch_(options.dead_peer_timeout_s) {}

    /// The thread sleeps on `event_fd`; -1: there is nothing to sleep on.
    status start_thread(int event_fd);
    /// First thing in the network's destructor: the thread uses all of it.
    void stop_thread() { thread_.reset(); }
    void nudge() { thread_->nudge(); }

    void note_poll() { attendance_.note_poll(); }
    /// poll() behind progress, which has `moved` something.
    int hand_over(bool moved, message_sink sink) {
        note_poll();
        note_moved(moved);
        if (!arrivals_.has_messages() || receiving_.test_and_set(std::memory_order_acquire)) {
            return moved ? 1 : 0; // who serves others' puts and gets is busy too
        }
        return hand_over_messages(sink);
    }
    /// Gives a peer up. Any thread, without locks.
    void lose(network_peer &lost, const std::string &why);

    /// Prepares for sleeping on the descriptor. False: there is something to do. One thread at a
    /// time.
    virtual bool arm() { return true; }

    // The network thread's:
    /// Does what there is to do. True if there was something.
    virtual bool serve() = 0;
    /// For how many milliseconds the thread may sleep, of which the watch allows `limit_ms`; -1: as
    /// long as nothing comes.
    virtual int choose_sleep(int limit_ms) { return limit_ms; }
    virtual void ping(network_peer &silent) = 0;

    // Any thread:
    [[nodiscard]] virtual std::vector<network_peer *> known_peers() const = 0;
    /// Ends what waits for the peer, as network_peer::fail.
    virtual std::string fail(network_peer &lost, const std::string &why) { return lost.fail(why); }
    /// Tells the sender now and then how much of its messages has been handled. Not of networks
    /// whose messages do not go through arrivals().
    virtual void note_handled(const message & /*each*/) {}
    /// Returns when what was sent has arrived, unless its peer is lost.
    virtual status drain() = 0;

    [[nodiscard]] launch::launcher &launcher() { return launcher_; }
    [[nodiscard]] arrivals &arrived() { return arrivals_; }

private:
    int hand_over_messages(message_sink sink);
    int watch_peers();
    bool arm_alone();
    /// Something came: the descriptor is worth listening to again.
    void note_moved(bool moved) {
        if (moved && had_false_alarm_.load(std::memory_order_relaxed)) [[unlikely]] {
            had_false_alarm_.store(false, std::memory_order_relaxed);
        }
    }

    launch::launcher &launcher_;
    doorbell ring_;
    double timeout_s_;
    watch watch_;
    attendance attendance_;
    std::mutex arm_mutex_;
    int event_fd_ = -1; ///< what the thread and those who nap sleep on; -1: nothing
    unique_fd nap_bell_;
    std::atomic<int> num_napping_{0};
    /// The descriptor ended a nap, and nothing has moved since.
    std::atomic<bool> had_false_alarm_{false};
    arrivals arrivals_;
    std::atomic_flag receiving_;
    std::vector<std::byte> taken_messages_; ///< under receiving_
    std::mutex sink_mutex_;
    failure_sink failure_sink_;
    std::unique_ptr<network_thread> thread_;
};

} // namespace diomp::conduit
