// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A backend whose queues complete, fail and hang as the test says. Queues are numbered in the order
// in which they are made.
#pragma once

#include "device/device.h"

#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <vector>

namespace diomp::test {

/// Shared by the test and the queues. Any thread.
class script {
public:
    bool wait_completes = true; ///< else a wait blocks until the test completes the queue
    int completes_after = 0;    ///< questions; 0: only the test completes
    int most_per_device = 0;    ///< queues; more are counted as misuse; 0: any number
    int refuse_copies = 0;      ///< so many of the next ones fail
    int refuse_queues = 0;

    void complete(std::size_t number) {
        std::lock_guard const guard(mutex_);
        finish(queues_.at(number));
        changed_.notify_all();
    }
    /// From now on waits complete as well.
    void complete_all() {
        std::lock_guard const guard(mutex_);
        wait_completes = true;
        for (state &each : queues_) {
            finish(each);
        }
        changed_.notify_all();
    }
    void fail(std::size_t number) {
        std::lock_guard const guard(mutex_);
        queues_.at(number).broken = true;
    }
    void fail_when_waited(std::size_t number) {
        std::lock_guard const guard(mutex_);
        queues_.at(number).breaks_in_wait = true;
    }
    void until_waiting_for(std::size_t number) {
        std::unique_lock guard(mutex_);
        changed_.wait(guard, [&] { return queues_.at(number).being_waited_for; });
    }

    int copies(std::size_t number) { return read(number).copies; }
    int questions(std::size_t number) { return read(number).questions; }
    bool exists(std::size_t number) { return read(number).exists; }
    device::device_id device(std::size_t number) { return read(number).device; }
    std::vector<std::size_t> waited() {
        std::lock_guard const guard(mutex_);
        return waited_;
    }
    int misuses() {
        std::lock_guard const guard(mutex_);
        return misuses_;
    }
    int alive() {
        std::lock_guard const guard(mutex_);
        int count = 0;
        for (state const &each : queues_) {
            count += each.exists ? 1 : 0;
        }
        return count;
    }

private:
    friend class scripted_queue;
    friend class scripted_backend;
    struct state {
        device::device_id device;
        bool exists = true;
        bool idle = true;
        bool broken = false;
        bool breaks_in_wait = false;
        bool being_waited_for = false;
        int copies = 0;
        int questions = 0;
        int questions_since_copy = 0;
        void *dst = nullptr;
        const void *src = nullptr;
        std::size_t nbytes = 0;
    };

    state read(std::size_t number) {
        std::lock_guard const guard(mutex_);
        return queues_.at(number);
    }
    static void finish(state &of) {
        if (!of.idle) {
            std::memcpy(of.dst, of.src, of.nbytes);
            of.idle = true;
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<state> queues_; ///< [number]; gone ones too
    std::vector<std::size_t> waited_;
    int misuses_ = 0;
};

class scripted_queue final : public device::queue {
public:
    scripted_queue(script &by, std::size_t number) : script_(by), number_(number) {}
    ~scripted_queue() override {
        std::lock_guard const guard(script_.mutex_);
        mine().exists = false;
    }

    status copy(void *dst, const void *src, std::size_t nbytes) override {
        std::lock_guard const guard(script_.mutex_);
        if (script_.refuse_copies > 0) {
            --script_.refuse_copies;
            return error(OMPX_ERR_SYSTEM, "refused");
        }
        script_.misuses_ += mine().idle ? 0 : 1;
        mine().idle = false;
        mine().dst = dst;
        mine().src = src;
        mine().nbytes = nbytes;
        mine().questions_since_copy = 0;
        ++mine().copies;
        return {};
    }
    result<bool> is_idle() override {
        std::lock_guard const guard(script_.mutex_);
        ++mine().questions;
        if (mine().broken) {
            return broke();
        }
        if (++mine().questions_since_copy == script_.completes_after) {
            script::finish(mine());
        }
        return mine().idle;
    }
    status wait() override {
        std::unique_lock guard(script_.mutex_);
        script_.waited_.push_back(number_);
        mine().being_waited_for = true;
        script_.changed_.notify_all();
        if (script_.wait_completes || script_.completes_after > 0) {
            script::finish(mine());
        }
        script_.changed_.wait(guard, [&] { return mine().idle; });
        mine().being_waited_for = false;
        if (mine().broken || mine().breaks_in_wait) {
            return broke();
        }
        return {};
    }

private:
    script::state &mine() { return script_.queues_.at(number_); }
    [[nodiscard]] error broke() const {
        return {OMPX_ERR_SYSTEM, "queue " + std::to_string(number_) + " broke"};
    }

    script &script_;
    std::size_t number_;
};

/// Queues only.
class scripted_backend final : public device::backend {
public:
    scripted_backend(script &by, int num_devices) : script_(by), num_devices_(num_devices) {}

    [[nodiscard]] const char *name() const override { return "scripted"; }
    [[nodiscard]] int num_devices() const override { return num_devices_; }
    result<std::unique_ptr<device::queue>> make_queue(device::device_id on) override {
        std::lock_guard const guard(script_.mutex_);
        if (script_.refuse_queues > 0) {
            --script_.refuse_queues;
            return error(OMPX_ERR_NOMEM, "no more queues");
        }
        int alive = 1;
        for (auto const &each : script_.queues_) {
            alive += each.exists && each.device == on ? 1 : 0;
        }
        script_.misuses_ += script_.most_per_device > 0 && alive > script_.most_per_device ? 1 : 0;
        script_.queues_.emplace_back().device = on;
        return std::unique_ptr<device::queue>(
            std::make_unique<scripted_queue>(script_, script_.queues_.size() - 1));
    }

    result<device::properties> describe(device::device_id /*on*/) override { return none(); }
    result<device::device_uuid> uuid_of(device::device_id /*on*/) override { return none(); }
    result<std::unique_ptr<device::memory>> reserve_at(device::device_id /*on*/,
                                                       std::size_t /*max_bytes*/,
                                                       std::uint64_t /*preferred*/) override {
        return none();
    }
    result<std::unique_ptr<device::peer_memory>>
    open_shared(device::device_id /*on*/, const device::shared_handle & /*handle*/) override {
        return none();
    }
    result<bool> can_access(device::device_id /*on*/, device::device_id /*other*/) override {
        return none();
    }
    result<device::pinned_memory> allocate_pinned(std::size_t /*nbytes*/) override {
        return none();
    }
    result<device::pinned_memory> pin(void * /*base*/, std::size_t /*nbytes*/) override {
        return none();
    }
    [[nodiscard]] std::optional<device::device_id> owner_of(const void * /*address*/) override {
        return {};
    }

private:
    static error none() { return {OMPX_ERR_UNSUPPORTED, "queues only"}; }

    script &script_;
    int num_devices_;
};

} // namespace diomp::test
