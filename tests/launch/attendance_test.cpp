// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attendance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace diomp::run {
namespace {

TEST(attendance, ranks_without_diomp_may_end_as_they_like) {
    attendance ranks(2);
    ranks.leave(0);
    EXPECT_FALSE(ranks.find_deserter());
}

TEST(attendance, leaving_without_a_word_while_others_run_is_desertion) {
    attendance ranks(3);
    ranks.join(0);
    ranks.join(1);
    ranks.leave(1);
    auto const found = ranks.find_deserter();
    ASSERT_TRUE(found);
    EXPECT_EQ(found->rank, 1);
    EXPECT_THAT(found->what, testing::HasSubstr("without ompx_finalize()"));
}

TEST(attendance, never_having_joined_is_told_when_somebody_else_has) {
    attendance ranks(2);
    ranks.leave(0);
    ranks.join(1);
    auto const found = ranks.find_deserter();
    ASSERT_TRUE(found);
    EXPECT_EQ(found->rank, 0);
    EXPECT_THAT(found->what, testing::HasSubstr("without having joined"));
}

TEST(attendance, good_order_is_no_desertion) {
    attendance ranks(2);
    for (int const rank : {0, 1}) {
        ranks.join(rank);
        ranks.finalize(rank);
        EXPECT_FALSE(ranks.find_deserter());
        ranks.leave(rank);
        EXPECT_FALSE(ranks.find_deserter());
    }
}

TEST(attendance, when_all_are_done_nobody_is_waited_for) {
    attendance ranks(2);
    ranks.join(0);
    ranks.join(1);
    ranks.finalize(0);
    ranks.leave(1);
    EXPECT_FALSE(ranks.find_deserter()); // 0 needs nobody any more
}

} // namespace
} // namespace diomp::run
