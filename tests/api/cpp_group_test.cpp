// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Groups through their C++ types. Runs with DIOMP_ERRORS=return.
#include "diomp.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

namespace {

class cpp_group : public testing::Test {
protected:
    int me = diomp::this_rank();
    int ranks = diomp::num_ranks();
};

TEST_F(cpp_group, the_world_is_the_default) {
    const diomp::group_ref world;
    EXPECT_EQ(world.size(), ranks);
    EXPECT_EQ(world.rank(), me);
    EXPECT_EQ(world.world_rank(ranks - 1), ranks - 1);
    EXPECT_EQ(diomp::group::world().handle(), ompx_group_world);
    EXPECT_FALSE(diomp::group().valid());
}

TEST_F(cpp_group, split_by_parity_orders_by_key) {
    const auto half = diomp::group::split({}, me % 2, -me);
    EXPECT_EQ(half.size(), (ranks + 1 - me % 2) / 2);
    EXPECT_EQ(half.world_rank(half.rank()), me);
    EXPECT_EQ(half.world_rank(half.size() - 1), me % 2) << "the highest key is the lowest rank's";
    const int sum = diomp::allreduce(me, diomp::op::sum, half);
    int expected = 0;
    for (int rank = me % 2; rank < ranks; rank += 2) {
        expected += rank;
    }
    EXPECT_EQ(sum, expected);
    diomp::barrier(half);
    diomp::fence(half);
}

TEST_F(cpp_group, a_negative_color_gives_no_group) {
    const auto only_zero = diomp::group::split({}, me == 0 ? 0 : -1);
    EXPECT_EQ(only_zero.valid(), me == 0);
    EXPECT_EQ(static_cast<bool>(only_zero), me == 0);
    if (me != 0) {
        EXPECT_THROW(diomp::barrier(only_zero), diomp::error);
    }
}

TEST_F(cpp_group, of_and_merge_and_move) {
    const auto alone = diomp::group::of(std::array{me});
    EXPECT_EQ(alone.size(), 1);
    std::vector<int> reversed(static_cast<std::size_t>(ranks));
    std::iota(reversed.rbegin(), reversed.rend(), 0);
    auto all = diomp::group::of(reversed);
    EXPECT_EQ(all.rank(), ranks - 1 - me);
    const auto merged = diomp::group::merge(all, diomp::group::world());
    EXPECT_EQ(merged.size(), ranks);
    EXPECT_EQ(merged.rank(), all.rank());
    diomp::group moved = std::move(all);
    EXPECT_FALSE(all.valid()); // NOLINT(bugprone-use-after-move): a moved-from group is none
    EXPECT_EQ(moved.size(), ranks);
    moved = diomp::group();
    EXPECT_FALSE(moved.valid());
}

} // namespace
