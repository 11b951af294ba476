// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "core/rank_tracker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace diomp::run {
namespace {

TEST(rank_tracker, ranks_without_diomp_may_end_as_they_like) {
    rank_tracker ranks(2);
    ranks.mark_exited(0);
    EXPECT_FALSE(ranks.find_premature_exit());
}

TEST(rank_tracker, leaving_without_a_word_while_others_run_is_desertion) {
    rank_tracker ranks(3);
    ranks.join(0);
    ranks.join(1);
    ranks.mark_exited(1);
    auto const found = ranks.find_premature_exit();
    ASSERT_TRUE(found);
    EXPECT_EQ(found->rank, 1);
    EXPECT_THAT(found->what, testing::HasSubstr("without ompx_finalize()"));
}

TEST(rank_tracker, never_having_joined_is_told_when_somebody_else_has) {
    rank_tracker ranks(2);
    ranks.mark_exited(0);
    ranks.join(1);
    auto const found = ranks.find_premature_exit();
    ASSERT_TRUE(found);
    EXPECT_EQ(found->rank, 0);
    EXPECT_THAT(found->what, testing::HasSubstr("without having joined"));
}

TEST(rank_tracker, good_order_is_no_desertion) {
    rank_tracker ranks(2);
    for (int const rank : {0, 1}) {
        ranks.join(rank);
        ranks.finalize(rank);
        EXPECT_FALSE(ranks.find_premature_exit());
        ranks.mark_exited(rank);
        EXPECT_FALSE(ranks.find_premature_exit());
    }
}

TEST(rank_tracker, when_all_are_done_nobody_is_waited_for) {
    rank_tracker ranks(2);
    ranks.join(0);
    ranks.join(1);
    ranks.finalize(0);
    ranks.mark_exited(1);
    EXPECT_FALSE(ranks.find_premature_exit()); // 0 needs nobody any more
}

} // namespace
} // namespace diomp::run
