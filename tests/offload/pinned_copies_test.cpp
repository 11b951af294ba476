// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The plugin's copies of private host memory, on devices that are threads, so that sanitizers see
// all of it.
#include "../../llvm/plugin/diomp/src/PinnedCopies.h"
#include "../../llvm/plugin/diomp/src/Runtime.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <sched.h>
#include <set>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

using llvm::omp::target::plugin::GenericPluginTy;

namespace {

/// Carries out one operation after the other.
class queue {
public:
    queue() : thread_([this] { run(); }) {}
    queue(const queue &) = delete;
    queue &operator=(const queue &) = delete;
    ~queue() {
        add({});
        thread_.join();
    }

    void add(std::function<void()> operation) {
        std::lock_guard const guard(mutex_);
        operations_.push_back(std::move(operation));
        changed_.notify_all();
    }

private:
    void run() {
        while (true) {
            std::function<void()> next;
            {
                std::unique_lock guard(mutex_);
                changed_.wait(guard, [this] { return !operations_.empty(); });
                next = std::move(operations_.front());
                operations_.pop_front();
            }
            if (!next) {
                return;
            }
            next();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> operations_;
    std::thread thread_;
};

struct event {
    std::mutex mutex;
    std::condition_variable changed;
    bool is_complete = true;
};

/// What the plugin's functions do.
struct machine {
    std::array<queue, 2> queues; ///< [device]
    std::atomic<int> live{0};    ///< allocations and events
    std::atomic<int> copies_until_failure{1 << 30};
    std::atomic<int> syncs_until_failure{1 << 30};
    std::atomic<bool> has_pinned_memory{true};
    std::atomic<int> device_copies{0};
    std::atomic<const void *> known_to_driver{nullptr};
    std::string plugin = "cuda";
};
machine *now;

bool fails(std::atomic<int> &countdown) { return countdown.fetch_sub(1) <= 0; }

int32_t start_copy(int32_t device, void *to, const void *from, int64_t nbytes) {
    if (fails(now->copies_until_failure)) {
        return OFFLOAD_FAIL;
    }
    ++now->device_copies;
    now->queues.at(static_cast<std::size_t>(device)).add([=] {
        std::memcpy(to, from, static_cast<std::size_t>(nbytes));
    });
    return OFFLOAD_SUCCESS;
}

} // namespace

void *GenericPluginTy::data_alloc(int32_t /*device*/, int64_t nbytes, void * /*host*/,
                                  int32_t kind) {
    EXPECT_EQ(kind, TARGET_ALLOC_HOST);
    if (!now->has_pinned_memory) {
        return nullptr;
    }
    ++now->live;
    return std::malloc(static_cast<std::size_t>(nbytes));
}
int32_t GenericPluginTy::data_delete(int32_t /*device*/, void *memory, int32_t /*kind*/) {
    --now->live;
    std::free(memory);
    return OFFLOAD_SUCCESS;
}
int32_t GenericPluginTy::create_event(int32_t /*device*/, void **into) {
    ++now->live;
    *into = new event;
    return OFFLOAD_SUCCESS;
}
int32_t GenericPluginTy::destroy_event(int32_t /*device*/, void *of) {
    --now->live;
    delete static_cast<event *>(of);
    return OFFLOAD_SUCCESS;
}
int32_t GenericPluginTy::record_event(int32_t device, void *of, __tgt_async_info * /*on*/) {
    auto *const recorded = static_cast<event *>(of);
    {
        std::lock_guard const guard(recorded->mutex);
        recorded->is_complete = false;
    }
    now->queues.at(static_cast<std::size_t>(device)).add([recorded] {
        std::lock_guard const guard(recorded->mutex);
        recorded->is_complete = true;
        recorded->changed.notify_all();
    });
    return OFFLOAD_SUCCESS;
}
int32_t GenericPluginTy::sync_event(int32_t /*device*/, void *of) {
    auto *const awaited = static_cast<event *>(of);
    std::unique_lock guard(awaited->mutex);
    awaited->changed.wait(guard, [awaited] { return awaited->is_complete; });
    return fails(now->syncs_until_failure) ? OFFLOAD_FAIL : OFFLOAD_SUCCESS;
}

const char *diomp::nameOfPlugin(const GenericPluginTy & /*plugin*/) { return now->plugin.c_str(); }

int32_t diomp::startTransfer(GenericPluginTy & /*plugin*/, int32_t device, const Transfer &what,
                             __tgt_async_info * /*on*/) {
    return what.ToDevice ? start_copy(device, what.Device, what.Host, what.Size)
                         : start_copy(device, what.Host, what.Device, what.Size);
}

extern "C" {
[[gnu::visibility("default")]] int cuPointerGetAttribute(void *into, int which, uint64_t address);
int cuPointerGetAttribute(void *into, int which, uint64_t address) {
    EXPECT_EQ(which, 2);
    *static_cast<unsigned *>(into) = 1;
    return address == reinterpret_cast<uint64_t>(now->known_to_driver.load()) ? 0 : 1;
}
}

namespace {

constexpr int64_t mib = 1 << 20;

class pinned_copies : public testing::Test {
protected:
    void SetUp() override {
        now = &machine_;
        // Programs that copy little do not pay for pinned memory.
        std::vector<char> there(static_cast<std::size_t>(8 * mib));
        std::vector<char> host(there.size());
        for (int i = 0; i < 4; ++i) {
            outcome(0, {true, there.data(), host.data(), 8 * mib - 1});
        }
        drain(0);
    }
    void TearDown() override {
        diomp::endPinnedCopies();
        EXPECT_EQ(machine_.live, 0);
    }

    std::optional<int32_t> outcome(int32_t device, const diomp::Transfer &what) {
        __tgt_async_info on;
        return diomp::copyThroughPinned(plugin_, device, what, &on);
    }
    void drain(int32_t device) {
        std::atomic<bool> is_done = false;
        machine_.queues.at(static_cast<std::size_t>(device)).add([&] { is_done = true; });
        while (!is_done) {
            std::this_thread::yield();
        }
    }
    static char byte_of(std::size_t at, int round) {
        return static_cast<char>(at * 131 + at / 4099 + static_cast<std::size_t>(round) * 17);
    }
    /// There and back. Returns how many of the two copies went through pinned memory.
    int round_trip(int32_t device, int64_t nbytes, int round) {
        auto const count = static_cast<std::size_t>(nbytes);
        std::vector<char> sent(count);
        std::vector<char> there(count);
        std::vector<char> got(count + 2, 'x');
        for (std::size_t i = 0; i < count; ++i) {
            sent[i] = byte_of(i, round);
        }
        int pinned = 0;
        auto const move = [&](bool to_device, char *host) {
            auto const done = outcome(device, {to_device, there.data(), host, nbytes});
            if (done) {
                EXPECT_EQ(*done, OFFLOAD_SUCCESS);
                ++pinned;
            } else {
                diomp::startTransfer(plugin_, device, {to_device, there.data(), host, nbytes},
                                     nullptr);
                drain(device);
            }
        };
        move(true, sent.data());
        std::ranges::fill(sent, 'y'); // it has been read
        move(false, got.data() + 1);
        EXPECT_EQ(got.front(), 'x');
        EXPECT_EQ(got.back(), 'x');
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < count; ++i) {
            wrong += got[i + 1] != byte_of(i, round) ? 1 : 0;
        }
        EXPECT_EQ(wrong, 0U) << nbytes << " bytes";
        return pinned;
    }

    GenericPluginTy plugin_;
    machine machine_;
};

TEST_F(pinned_copies, any_size_there_and_back) {
    for (int64_t const nbytes : {4 * mib, 4 * mib + 1, 9 * mib - 7, 41 * mib + 12345}) {
        EXPECT_EQ(round_trip(0, nbytes, 1), 2) << nbytes;
    }
}

TEST_F(pinned_copies, the_driver_copies_what_is_small_pinned_or_of_another_vendor) {
    std::vector<char> host(static_cast<std::size_t>(4 * mib));
    diomp::Transfer what{true, host.data(), host.data(), 4 * mib - 1};
    EXPECT_EQ(outcome(0, what), std::nullopt);
    what.Size = 4 * mib;
    machine_.known_to_driver = host.data();
    EXPECT_EQ(outcome(0, what), std::nullopt);
    machine_.known_to_driver = nullptr;
    machine_.plugin = "amdgpu";
    EXPECT_EQ(outcome(0, what), std::nullopt);
    machine_.plugin = "cuda";
    EXPECT_EQ(diomp::copyThroughPinned(plugin_, 0, what, nullptr), std::nullopt);
    machine_.has_pinned_memory = false;
    EXPECT_EQ(outcome(1, what), std::nullopt);
}

TEST_F(pinned_copies, what_the_queue_did_before_is_seen) {
    auto const count = static_cast<std::size_t>(6 * mib);
    std::vector<char> there(count, 'a');
    std::vector<char> got(count);
    machine_.queues[0].add([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        std::ranges::fill(there, 'b');
    });
    EXPECT_EQ(outcome(0, {false, there.data(), got.data(), 6 * mib}), OFFLOAD_SUCCESS);
    EXPECT_EQ(std::ranges::count(got, 'b'), 6 * mib);
}

TEST_F(pinned_copies, threads_and_devices_at_once) {
    std::atomic<int> pinned = 0;
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread) {
        threads.emplace_back([&, thread] {
            for (int round = 0; round < 3; ++round) {
                pinned += round_trip(thread % 2, 7 * mib + thread, 10 * thread + round);
            }
        });
    }
    for (auto &each : threads) {
        each.join();
    }
    EXPECT_GT(pinned, 0);
}

TEST_F(pinned_copies, a_copy_that_fails_says_so_and_the_next_one_works) {
    std::vector<char> there(static_cast<std::size_t>(32 * mib));
    std::vector<char> host(there.size());
    for (bool const to_device : {true, false}) {
        for (int const after : {0, 1, 7, 20}) {
            machine_.copies_until_failure = after;
            EXPECT_EQ(outcome(0, {to_device, there.data(), host.data(), 32 * mib}), OFFLOAD_FAIL);
            machine_.copies_until_failure = 1 << 30;
            machine_.syncs_until_failure = after;
            auto const synchronised = outcome(0, {to_device, there.data(), host.data(), 32 * mib});
            EXPECT_EQ(synchronised, OFFLOAD_FAIL) << to_device << " after " << after;
            machine_.syncs_until_failure = 1 << 30;
            drain(0);
            EXPECT_EQ(round_trip(0, 12 * mib, after), 2);
        }
    }
}

TEST_F(pinned_copies, threads_may_run_where_the_process_may) {
    cpu_set_t before;
    ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
        if (CPU_ISSET(cpu, &before)) {
            CPU_SET(cpu, &one);
        }
    }
    diomp::endPinnedCopies();
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(round_trip(0, 33 * mib, 3), 2);
    ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
    int threads = 0;
    for (const auto &each : std::filesystem::directory_iterator("/proc/self/task")) {
        std::string name;
        std::ifstream(each.path() / "comm") >> name;
        if (name == "diomp-copy") {
            cpu_set_t found;
            auto const id = static_cast<pid_t>(std::stol(each.path().filename()));
            ASSERT_EQ(::sched_getaffinity(id, sizeof found, &found), 0);
            EXPECT_TRUE(CPU_EQUAL(&found, &before));
            ++threads;
        }
    }
    EXPECT_EQ(threads, 2);
}

} // namespace
