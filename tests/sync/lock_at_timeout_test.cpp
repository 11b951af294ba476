// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A wait for a lock at an address that fails after DIOMP_TIMEOUT, and what can be done then.
#include "diomp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

namespace {

int const me = ompx_rank_num();
int const ranks = ompx_num_ranks();

TEST(lock_at_timeout, the_rank_stays_in_the_queue_and_may_go_on) {
    auto *const lock =
        static_cast<ompx_lock_t *>(ompx_alloc(sizeof(ompx_lock_t), 0, OMPX_MEM_SYMMETRIC));
    auto *const done =
        static_cast<std::int32_t *>(ompx_alloc(sizeof(std::int32_t), 0, OMPX_MEM_SYMMETRIC));
    *done = 0;
    ASSERT_EQ(ompx_lock_at_init(lock, 1), 0);
    if (me == 0) {
        ASSERT_EQ(ompx_lock_at(lock), 0);
    }
    ompx_barrier();
    if (me == 1) {
        EXPECT_EQ(ompx_lock_at(lock), OMPX_ERR_TIMEOUT);
        EXPECT_THAT(ompx_last_error(), testing::HasSubstr("waiting for the lock at"));
        EXPECT_EQ(ompx_unlock_at(lock), OMPX_ERR_LOCK) << "it does not hold it";
        EXPECT_EQ(ompx_try_lock_at(lock), OMPX_ERR_BUSY);
        EXPECT_EQ(ompx_lock_at(lock), OMPX_ERR_TIMEOUT) << "the wait goes on";
    }
    // A wait of the others would fail as well, so they poll.
    std::int32_t const one = 1;
    if (me == 1) {
        for (int rank = 0; rank < ranks; ++rank) {
            ASSERT_EQ(ompx_put(rank, done, &one, sizeof(one)), 0);
        }
        ASSERT_EQ(ompx_fence(), 0);
    }
    while (ompx_test_until(done, OMPX_INT32, OMPX_CMP_EQ, &one) == 0) {
    }
    if (me == 0) {
        ASSERT_EQ(ompx_unlock_at(lock), 0);
    }
    ompx_barrier();
    if (me == 1) { // granted meanwhile
        ASSERT_EQ(ompx_try_lock_at(lock), 0);
        EXPECT_EQ(ompx_lock_at(lock), OMPX_ERR_LOCK);
        ASSERT_EQ(ompx_unlock_at(lock), 0);
    }
    ompx_barrier();
    ASSERT_EQ(ompx_lock_at(lock), 0) << "all ranks get it again";
    ASSERT_EQ(ompx_unlock_at(lock), 0);
    ompx_barrier();
    EXPECT_EQ(lock->word, 0U);
    ASSERT_EQ(ompx_free(done), 0);
    ASSERT_EQ(ompx_free(lock), 0);
}

} // namespace
