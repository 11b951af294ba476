// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Locks at an address in symmetric memory and in static data, in C and in C++.
#include "diomp.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <vector>

namespace {

int const me = ompx_rank_num();
int const ranks = ompx_num_ranks();

/// Locks and, at rank 0, counters that are not atomic.
/// The parameter: whether the locks are in static data that all ranks have registered.
class lock_at : public testing::TestWithParam<bool> {
protected:
    static constexpr std::size_t count = 5;

    void SetUp() override {
        if (GetParam()) {
            locks = static_locks;
            ASSERT_EQ(ompx_register_symmetric(static_locks, sizeof(static_locks)), 0);
        } else {
            locks = static_cast<ompx_lock_t *>(
                ompx_alloc(count * sizeof(ompx_lock_t), 0, OMPX_MEM_SYMMETRIC));
        }
        std::memset(static_cast<void *>(locks), 0xff, count * sizeof(ompx_lock_t));
        counters = static_cast<std::int64_t *>(
            ompx_alloc(count * sizeof(std::int64_t), 0, OMPX_MEM_SYMMETRIC));
        std::fill_n(counters, count, 0);
        ASSERT_EQ(ompx_lock_at_init(locks, count), 0);
    }
    void TearDown() override {
        ompx_barrier();
        for (std::size_t i = 0; i < count; ++i) {
            EXPECT_EQ(locks[i].word, 0U) << "all locks are free again, at all ranks";
        }
        EXPECT_EQ(ompx_free(counters), 0);
        EXPECT_EQ(GetParam() ? ompx_unregister_symmetric(locks) : ompx_free(locks), 0);
    }
    /// Correct only under the lock.
    void increment(std::size_t i) const {
        std::int64_t value = 0;
        ompx_get(&value, 0, &counters[i], sizeof(value));
        ++value;
        ompx_put(0, &counters[i], &value, sizeof(value));
    }

    /// The low half of the word at the lock's home rank is the last rank of the queue, plus 1.
    static int last_in_queue(const ompx_lock_t *lock) {
        for (int rank = 0; rank < ranks; ++rank) {
            std::uint64_t word = 0;
            ompx_get(&word, rank, lock, sizeof(word));
            if (auto const last = static_cast<std::uint32_t>(word); last != 0) {
                return static_cast<int>(last) - 1;
            }
        }
        return -1;
    }

    static inline ompx_lock_t static_locks[count];
    ompx_lock_t *locks = nullptr;
    std::int64_t *counters = nullptr;
};

TEST_P(lock_at, excludes_other_ranks) {
    constexpr int rounds = 400;
    for (int n = 0; n < rounds; ++n) {
        std::size_t const i = static_cast<std::size_t>(n) % 2; // two at the same time
        ASSERT_EQ(ompx_lock_at(&locks[i]), 0);
        increment(i);
        ASSERT_EQ(ompx_unlock_at(&locks[i]), 0);
    }
    ompx_barrier();
    if (me == 0) {
        EXPECT_EQ(counters[0], rounds / 2 * ranks);
        EXPECT_EQ(counters[1], rounds / 2 * ranks);
    }
}

TEST_P(lock_at, several_are_held_at_once) {
    for (int n = 0; n < 50; ++n) {
        for (std::size_t i = 0; i < count; ++i) { // in one order on all ranks
            ASSERT_EQ(ompx_lock_at(&locks[i]), 0);
            increment(i);
        }
        for (std::size_t i = 0; i < count; ++i) {
            ASSERT_EQ(ompx_unlock_at(&locks[i]), 0);
        }
    }
    ompx_barrier();
    if (me == 0) {
        EXPECT_THAT(std::vector<std::int64_t>(counters, counters + count),
                    testing::Each(50 * ranks));
    }
}

TEST_P(lock_at, try_says_busy_and_takes_a_free_lock) {
    ompx_lock_t *const lock = &locks[2];
    for (int holder = 0; holder < ranks; ++holder) {
        if (me == holder) {
            ASSERT_EQ(ompx_try_lock_at(lock), 0);
        }
        ompx_barrier();
        if (me != holder) {
            EXPECT_EQ(ompx_try_lock_at(lock), OMPX_ERR_BUSY);
            EXPECT_EQ(ompx_unlock_at(lock), OMPX_ERR_LOCK);
        }
        ompx_barrier();
        if (me == holder) {
            ASSERT_EQ(ompx_unlock_at(lock), 0);
        }
        ompx_barrier();
    }
    int taken = 0;
    while (taken < 30) { // all at once, without waiting
        int const status = ompx_try_lock_at(lock);
        if (status == OMPX_ERR_BUSY) {
            continue;
        }
        ASSERT_EQ(status, 0);
        increment(2);
        ++taken;
        ASSERT_EQ(ompx_unlock_at(lock), 0);
    }
    ompx_barrier();
    if (me == 0) {
        EXPECT_EQ(counters[2], 30 * ranks);
    }
}

TEST_P(lock_at, waiting_ranks_get_it_in_order) {
    ompx_lock_t *const lock = &locks[3];
    auto *const turn = &counters[4];
    if (me == 0) {
        ASSERT_EQ(ompx_lock_at(lock), 0);
        std::int64_t const one = 1;
        for (int rank = ranks - 1; rank > 0; --rank) { // the last rank first
            ASSERT_EQ(ompx_put(rank, turn, &one, sizeof(one)), 0);
            while (last_in_queue(lock) != rank) {
                ASSERT_EQ(ompx_progress(), 0);
            }
        }
        ASSERT_EQ(ompx_unlock_at(lock), 0);
        return;
    }
    std::int64_t const one = 1;
    ASSERT_EQ(ompx_wait_until(turn, OMPX_INT64, OMPX_CMP_EQ, &one), 0);
    ASSERT_EQ(ompx_lock_at(lock), 0);
    std::int64_t num_before = 0;
    ASSERT_EQ(ompx_get(&num_before, 0, &counters[3], sizeof(num_before)), 0);
    EXPECT_EQ(num_before, ranks - 1 - me);
    increment(3);
    ASSERT_EQ(ompx_unlock_at(lock), 0);
}

TEST_P(lock_at, orders_memory) {
    // Plain stores of the holder are seen by the next one, in memory that all can load.
    if (ompx_num_local_ranks() != ranks || ompx_remote_ptr(counters, (me + 1) % ranks) == nullptr) {
        GTEST_SKIP() << "not all ranks load the memory of rank 0";
    }
    auto *const shared = static_cast<std::int64_t *>(ompx_remote_ptr(counters, 0));
    for (int n = 0; n < 1000; ++n) {
        ASSERT_EQ(ompx_lock_at(&locks[0]), 0);
        shared[0] += 1;
        shared[1] = shared[0];
        ASSERT_EQ(ompx_unlock_at(&locks[0]), 0);
    }
    ompx_barrier();
    EXPECT_EQ(shared[1], 1000 * ranks);
}

TEST_P(lock_at, misuse_is_an_error) {
    ompx_lock_t own{};
    EXPECT_EQ(ompx_lock_at(&own), OMPX_ERR_ADDRESS);
    EXPECT_EQ(ompx_lock_at(nullptr), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_unlock_at(nullptr), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_try_lock_at(&own), OMPX_ERR_ADDRESS);
    auto *const crooked =
        reinterpret_cast<ompx_lock_t *>(reinterpret_cast<std::uintptr_t>(locks) + 4);
    EXPECT_EQ(ompx_lock_at(crooked), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_lock_at_init(&own, 1), OMPX_ERR_ADDRESS);
    EXPECT_EQ(ompx_lock_at_init(locks, SIZE_MAX / 8), OMPX_ERR_ARG);
    if (GetParam()) {
        EXPECT_EQ(ompx_lock_at_init(locks, count + 1), OMPX_ERR_ADDRESS);
        EXPECT_EQ(ompx_lock_at(locks + count), OMPX_ERR_ADDRESS);
        EXPECT_EQ(ompx_lock_at(locks - 1), OMPX_ERR_ADDRESS);
    }
    EXPECT_EQ(ompx_register(&own, sizeof(own)), 0);
    EXPECT_EQ(ompx_lock_at(&own), OMPX_ERR_ADDRESS) << "other ranks do not have it";
    EXPECT_EQ(ompx_unregister(&own), 0);
    EXPECT_EQ(ompx_lock_at_init(nullptr, 0), 0);
    auto *const local = static_cast<ompx_lock_t *>(ompx_alloc(8, 0, OMPX_MEM_LOCAL));
    EXPECT_EQ(ompx_lock_at(local), OMPX_ERR_ADDRESS);
    EXPECT_EQ(ompx_free(local), 0);

    EXPECT_EQ(ompx_unlock_at(&locks[1]), OMPX_ERR_LOCK);
    ASSERT_EQ(ompx_lock_at(&locks[1]), 0);
    EXPECT_EQ(ompx_lock_at(&locks[1]), OMPX_ERR_LOCK);
    EXPECT_THAT(ompx_last_error(), testing::HasSubstr("holds the lock already"));
    EXPECT_EQ(ompx_try_lock_at(&locks[1]), OMPX_ERR_LOCK);
    ASSERT_EQ(ompx_unlock_at(&locks[1]), 0);
    EXPECT_EQ(ompx_unlock_at(&locks[1]), OMPX_ERR_LOCK);
}

TEST_P(lock_at, as_standard_mutexes) {
    diomp::queue_mutex const first(&locks[0]);
    diomp::queue_mutex second(&locks[1]);
    for (int n = 0; n < 50; ++n) {
        {
            diomp::lock_guard const hold(first);
            increment(0);
        }
        std::lock_guard const hold(second);
        increment(1);
    }
    ompx_barrier();
    if (me == 0) {
        EXPECT_EQ(counters[0], 50 * ranks);
        EXPECT_EQ(counters[1], 50 * ranks);
    }
    ompx_barrier();
    std::unique_lock<diomp::queue_mutex> held(second, std::defer_lock);
    if (me == 0) {
        EXPECT_TRUE(held.try_lock());
    }
    ompx_barrier();
    if (me != 0) {
        EXPECT_FALSE(held.try_lock());
    }
    ompx_barrier();
}

INSTANTIATE_TEST_SUITE_P(memory, lock_at, testing::Bool(),
                         [](const auto &kind) { return kind.param ? "static_data" : "symmetric"; });

} // namespace
