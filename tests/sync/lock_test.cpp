// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "diomp.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace {

int const me = ompx_rank_num();
int const ranks = ompx_num_ranks();

class lock : public testing::Test {
protected:
    void SetUp() override {
        counter = static_cast<std::int64_t *>(ompx_alloc(sizeof(*counter), 0, OMPX_MEM_SYMMETRIC));
        *counter = 0;
        ompx_barrier();
    }
    void TearDown() override { ompx_free(counter); }

    /// Not atomic: correct only under a lock.
    void increment(int rank) const {
        std::int64_t value = 0;
        ompx_get(&value, rank, counter, sizeof(value));
        ++value;
        ompx_put(rank, counter, &value, sizeof(value));
    }

    std::int64_t *counter = nullptr;
};

TEST_F(lock, excludes_other_ranks) {
    constexpr int rounds = 300;
    for (int i = 0; i < rounds; ++i) {
        int const target = i % ranks;
        ASSERT_EQ(ompx_lock(target), 0);
        increment(target);
        ASSERT_EQ(ompx_unlock(target), 0);
    }
    ompx_barrier();
    int expected = 0;
    for (int i = 0; i < rounds; ++i) {
        expected += i % ranks == me ? ranks : 0;
    }
    EXPECT_EQ(*counter, expected);
    ompx_barrier();
}

TEST_F(lock, for_threads_excludes_threads_of_all_ranks) {
    constexpr int rounds = 100;
    constexpr int threads = 3;
    std::atomic<int> failures{0};
    std::vector<std::thread> team;
    for (int t = 0; t < threads; ++t) {
        team.emplace_back([&] {
            for (int i = 0; i < rounds; ++i) {
                failures += ompx_lockt(0) != 0;
                increment(0);
                failures += ompx_unlockt(0) != 0;
            }
        });
    }
    for (auto &thread : team) {
        thread.join();
    }
    EXPECT_EQ(failures, 0);
    ompx_barrier();
    if (me == 0) {
        EXPECT_EQ(*counter, rounds * threads * ranks);
    }
    ompx_barrier();
}

TEST_F(lock, try_forms_say_busy_and_take_it_when_free) {
    auto *const taken = counter; // 1 while rank 0 holds the lock
    int const target = ranks - 1;
    std::int64_t const one = 1;
    if (me == 0) {
        ASSERT_EQ(ompx_try_lock(target), 0);
        for (int rank = 1; rank < ranks; ++rank) {
            ompx_put(rank, taken, &one, sizeof(one));
        }
        for (int rank = 1; rank < ranks; ++rank) {
            std::int64_t const all = ranks - 1;
            ASSERT_EQ(ompx_wait_until(counter, OMPX_INT64, OMPX_CMP_EQ, &all), 0);
        }
        ASSERT_EQ(ompx_unlock(target), 0);
    } else {
        ASSERT_EQ(ompx_wait_until(taken, OMPX_INT64, OMPX_CMP_EQ, &one), 0);
        EXPECT_EQ(ompx_try_lock(target), OMPX_ERR_BUSY);
        EXPECT_EQ(ompx_unlock(target), OMPX_ERR_LOCK);
        // The other lock space is free.
        ASSERT_EQ(ompx_lockt(target), 0);
        ASSERT_EQ(ompx_unlockt(target), 0);
        ASSERT_EQ(ompx_atomic_add(0, counter, &one, OMPX_INT64), 0);
    }
    ompx_barrier();
    if (me == ranks - 1) {
        ASSERT_EQ(ompx_try_lock(target), 0);
        ASSERT_EQ(ompx_unlock(target), 0);
    }
    ompx_barrier();
}

TEST_F(lock, misuse_is_an_error) {
    EXPECT_EQ(ompx_unlock(0), OMPX_ERR_LOCK);
    EXPECT_EQ(ompx_unlockt(0), OMPX_ERR_LOCK);
    EXPECT_EQ(ompx_lock(ranks), OMPX_ERR_RANK);
    EXPECT_EQ(ompx_lock(-1), OMPX_ERR_RANK);
    ASSERT_EQ(ompx_lock(me), 0);
    EXPECT_EQ(ompx_lock(me), OMPX_ERR_LOCK);
    EXPECT_NE(std::string(ompx_last_error()).find("already"), std::string::npos)
        << ompx_last_error();
    ASSERT_EQ(ompx_unlock(me), 0);
    EXPECT_EQ(ompx_unlock(me), OMPX_ERR_LOCK);
    // A thread's lock cannot be released by another thread.
    ASSERT_EQ(ompx_lockt(me), 0);
    std::thread([] { EXPECT_EQ(ompx_unlockt(me), OMPX_ERR_LOCK); }).join();
    ASSERT_EQ(ompx_unlockt(me), 0);
    ompx_barrier();
}

TEST_F(lock, a_computing_rank_does_not_hold_up_its_lock) {
    // Rank 0 never calls anything while the others use the lock that lives there.
    std::int64_t const one = 1;
    if (me == 0) {
        while (std::atomic_ref(*counter).load() != ranks - 1) {
        }
    } else {
        ASSERT_EQ(ompx_lock(0), 0);
        ASSERT_EQ(ompx_unlock(0), 0);
        ASSERT_EQ(ompx_atomic_add(0, counter, &one, OMPX_INT64), 0);
    }
    ompx_barrier();
}

// Whose system's identity a later thread may get.
TEST_F(lock, of_a_thread_that_has_ended_stays_locked) {
    std::thread([] { EXPECT_EQ(ompx_lockt(me), 0); }).join();
    for (int i = 0; i < 3; ++i) {
        std::thread([] {
            EXPECT_EQ(ompx_try_lockt(me), OMPX_ERR_BUSY);
            EXPECT_EQ(ompx_unlockt(me), OMPX_ERR_LOCK);
        }).join();
    }
}

} // namespace
