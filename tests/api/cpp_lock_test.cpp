// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Locks as standard mutexes. Runs with DIOMP_ERRORS=return.
#include "diomp.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <mutex>

namespace {

class cpp_lock : public testing::Test {
protected:
    int me = diomp::this_rank();
    int ranks = diomp::num_ranks();
};

TEST_F(cpp_lock, guards_exclude_other_ranks) {
    auto shared = diomp::make_symmetric<std::int64_t>(0);
    const auto at_last = diomp::at(ranks - 1, shared.get());
    for (int i = 0; i < 100; ++i) {
        const diomp::lock_guard hold(ranks - 1);
        *at_last = *at_last + 1;
        diomp::fence();
    }
    for (int i = 0; i < 100; ++i) {
        diomp::rank_mutex mutex(ranks - 1);
        const std::unique_lock hold(mutex);
        *at_last = *at_last + 1;
    }
    diomp::barrier();
    EXPECT_EQ(at_last.get(), 200 * ranks);
    diomp::barrier();
    for (int i = 0; i < 100; ++i) {
        const diomp::lock_guard hold(diomp::thread_mutex(0));
        *at_last = *at_last - 1;
    }
    diomp::barrier();
    EXPECT_EQ(at_last.get(), 100 * ranks);
    diomp::barrier();
}

TEST_F(cpp_lock, try_lock_says_busy_and_does_not_throw) {
    const diomp::rank_mutex mutex(0);
    if (me == 0) {
        mutex.lock();
    }
    diomp::barrier();
    if (me != 0) {
        EXPECT_FALSE(mutex.try_lock());
    }
    diomp::barrier();
    if (me == 0) {
        mutex.unlock();
    }
    diomp::barrier();
    if (me == ranks - 1) {
        EXPECT_TRUE(mutex.try_lock());
        mutex.unlock();
    }
    diomp::barrier();
}

TEST_F(cpp_lock, several_at_once_without_deadlock) {
    for (int i = 0; i < 20; ++i) {
        diomp::rank_mutex first(me % ranks);
        diomp::rank_mutex second((me + 1) % ranks);
        diomp::thread_mutex third(me % ranks);
        if (ranks == 1) {
            const std::scoped_lock hold(first, third);
        } else {
            const std::scoped_lock hold(third, first, second);
        }
    }
    diomp::barrier();
}

TEST_F(cpp_lock, unlocking_what_is_not_held_is_an_error) {
    const diomp::rank_mutex mutex(0);
    EXPECT_THROW(mutex.unlock(), diomp::error);
    const diomp::thread_mutex of_threads(0);
    EXPECT_THROW(of_threads.unlock(), diomp::error);
    diomp::barrier();
}

} // namespace
