// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Order without completion, completion at one rank, a barrier without a fence.
#include "diomp.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace {

int const me = ompx_rank_num();
int const ranks = ompx_num_ranks();
int const next = (me + 1) % ranks;
int const before = (me + ranks - 1) % ranks;

/// A flag that is put after the data says that the data is there.
TEST(ordering, what_is_put_after_the_order_arrives_after_what_was_put_before) {
    constexpr std::size_t words = 3000;
    constexpr std::int64_t rounds = 100;
    auto const data = diomp::make_symmetric<std::int64_t[]>(words);
    auto const flags = diomp::make_symmetric<std::int64_t[]>(2); // arrived, taken
    std::vector<std::int64_t> source(words);
    for (std::int64_t round = 1; round <= rounds; ++round) {
        std::fill(source.begin(), source.end(), 1000 * round + me);
        ASSERT_EQ(ompx_put(next, data.get(), source.data(), words / 2 * 8), 0);
        ASSERT_EQ(ompx_put_nb(next, data.get() + words / 2, source.data(), words / 2 * 8, nullptr),
                  0);
        ASSERT_EQ(ompx_order(), 0);
        ASSERT_EQ(ompx_put(next, &flags[0], &round, 8), 0);
        diomp::wait_until(&flags[0], OMPX_CMP_GE, round);
        for (std::size_t i = 0; i < words; ++i) {
            ASSERT_EQ(data[i], 1000 * round + before) << round << ' ' << i;
        }
        diomp::order();
        ASSERT_EQ(ompx_put(before, &flags[1], &round, 8), 0);
        diomp::wait_until(&flags[1], OMPX_CMP_GE, round);
        ASSERT_EQ(ompx_fence(), 0); // the source of the put without an event
    }
    ASSERT_EQ(ompx_barrier(), 0);
}

TEST(ordering, a_fence_of_one_rank_completes_all_kinds_there) {
    constexpr std::size_t words = 20000;
    auto const data = diomp::make_symmetric<std::int64_t[]>(words + 1);
    auto const counter = diomp::make_symmetric<std::int64_t[]>(1);
    std::vector<std::int64_t> source(words);
    for (std::int64_t round = 1; round <= 10; ++round) {
        for (int to = 0; to < ranks; ++to) {
            std::fill(source.begin(), source.end(), 100 * round + me);
            std::int64_t const one = 1;
            ASSERT_EQ(ompx_barrier(), 0);
            if (me == round % ranks) {
                ASSERT_EQ(ompx_put_nb(to, data.get(), source.data(), words * 8, nullptr), 0);
                ASSERT_EQ(ompx_atomic_add(to, counter.get(), &one, OMPX_INT64), 0);
                ASSERT_EQ(ompx_fence_rank(to), 0);
                source.assign(words, -1); // may be reused
                std::int64_t last = 0;
                ASSERT_EQ(ompx_get(&last, to, &data[words - 1], 8), 0);
                ASSERT_EQ(last, 100 * round + me);
                ASSERT_EQ(ompx_get(&last, to, counter.get(), 8), 0);
                ASSERT_EQ(last, round);
            }
        }
    }
    diomp::fence_rank(me);
    EXPECT_EQ(ompx_fence_rank(ranks), OMPX_ERR_RANK);
    EXPECT_EQ(ompx_fence_rank(-1), OMPX_ERR_RANK);
    ASSERT_EQ(ompx_barrier(), 0);
}

/// Its message names what the program has written, not the function behind it.
TEST(ordering, a_fence_of_no_group_is_an_error) {
    int none = 0;
    EXPECT_NE(ompx_fence(reinterpret_cast<ompx_group_t>(&none)), 0);
    EXPECT_THAT(ompx_last_error(), testing::HasSubstr("ompx_fence(group=0x"));
}

/// No member leaves before all have come, and a signal orders the data.
TEST(ordering, a_sync_waits_for_all_members) {
    auto const arrived = diomp::make_symmetric<std::int64_t[]>(1);
    std::int64_t const one = 1;
    for (std::int64_t round = 1; round <= 50; ++round) {
        ASSERT_EQ(ompx_atomic_add(0, arrived.get(), &one, OMPX_INT64), 0);
        ASSERT_EQ(ompx_fence(), 0);
        ASSERT_EQ(ompx_sync(ompx_group_world), 0);
        std::int64_t seen = 0;
        ASSERT_EQ(ompx_get(&seen, 0, arrived.get(), 8), 0);
        ASSERT_EQ(seen, round * ranks);
        diomp::sync(diomp::group::world());
    }
    auto const halves = diomp::group::split({}, me % 2);
    for (int i = 0; i < 20; ++i) {
        ASSERT_EQ(ompx_sync(halves.handle()), 0);
    }
    EXPECT_EQ(ompx_sync(OMPX_GROUP_NONE), OMPX_ERR_ARG);
    ASSERT_EQ(ompx_barrier(), 0);
}

TEST(ordering, a_sync_is_not_a_barrier) {
    if (ranks == 1) {
        GTEST_SKIP() << "needs two ranks";
    }
    EXPECT_EQ(me == 0 ? ompx_sync(nullptr) : ompx_barrier(), OMPX_ERR_MISMATCH);
    EXPECT_NE(std::string(ompx_last_error()).find("made ompx_sync()"), std::string::npos)
        << ompx_last_error();
    ASSERT_EQ(ompx_barrier(), 0);
}

} // namespace
