// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/biased_mutex.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace {

using diomp::biased_mutex;

/// Locks `times` times and counts what only the holder may touch.
void count(biased_mutex &mutex, long &counter, int times) {
    for (int i = 0; i < times; ++i) {
        std::lock_guard const guard(mutex);
        counter = counter + 1;
    }
}

TEST(biased_mutex, excludes_threads_that_come_while_its_owner_goes_on) {
    constexpr int times = 2000;
    for (int round = 0; round < 50; ++round) {
        auto const mutex = std::make_unique<biased_mutex>();
        long counter = 0;
        count(*mutex, counter, 10); // this thread owns it now
        std::vector<std::thread> others;
        for (int i = 0; i < 3; ++i) {
            others.emplace_back([&] { count(*mutex, counter, times); });
        }
        count(*mutex, counter, times);
        for (auto &each : others) {
            each.join();
        }
        EXPECT_EQ(counter, 4 * times + 10) << "round " << round;
    }
}

TEST(biased_mutex, another_thread_waits_for_an_owner_inside) {
    biased_mutex mutex;
    mutex.lock(); // as everybody does
    mutex.unlock();
    mutex.lock(); // as its owner
    std::atomic<bool> is_in{false};
    std::thread other([&] {
        std::lock_guard const guard(mutex);
        is_in = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_FALSE(is_in);
    mutex.unlock();
    other.join();
    EXPECT_TRUE(is_in);
    mutex.lock(); // it still works here
    mutex.unlock();
}

TEST(biased_mutex, outlives_its_owner) {
    biased_mutex mutex;
    long counter = 0;
    for (int i = 0; i < 20; ++i) { // each may be where the one before was, and so be taken for it
        std::thread([&] { count(mutex, counter, 100); }).join();
    }
    EXPECT_EQ(counter, 2000);
}

} // namespace
