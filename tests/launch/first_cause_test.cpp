// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "core/first_cause.h"

#include <gtest/gtest.h>

namespace diomp::run {
namespace {

using cause_wait = first_cause::cause_wait;

failure with(const std::string &message, bool after_timeout = false) {
    failure made;
    made.message = message;
    made.after_timeout = after_timeout;
    return made;
}

std::string found(const first_cause &causes, cause_wait left) {
    const failure *const cause = causes.find(left);
    return cause != nullptr ? cause->message : "";
}

TEST(first_cause, an_own_failure_decides_at_once) {
    first_cause causes(3);
    EXPECT_FALSE(causes.has_failure());
    EXPECT_EQ(causes.find(cause_wait::none), nullptr);
    causes.note_failure(1, with("killed"));
    EXPECT_TRUE(causes.has_failure());
    EXPECT_EQ(found(causes, cause_wait::reports), "killed");
}

TEST(first_cause, who_lost_a_peer_waits_for_the_peers_end) {
    first_cause causes(3);
    causes.note_loss(0, 1);
    causes.note_failure(0, with("0 aborted"));
    EXPECT_EQ(found(causes, cause_wait::reports), "");
    causes.note_loss(2, 1);
    causes.note_failure(2, with("2 exited with 1"));
    EXPECT_EQ(found(causes, cause_wait::reports), "");
    causes.note_failure(1, with("1 exited with 3"));
    EXPECT_EQ(found(causes, cause_wait::reports), "1 exited with 3");
}

TEST(first_cause, a_closed_socket_announces_an_end_that_is_waited_for) {
    first_cause causes(2);
    causes.note_closed(1);
    causes.note_loss(0, 1);
    causes.note_failure(0, with("0 aborted"));
    EXPECT_EQ(found(causes, cause_wait::reports), "");
    EXPECT_EQ(found(causes, cause_wait::exits), "");
    causes.note_failure(1, with("1 was killed"));
    EXPECT_EQ(found(causes, cause_wait::exits), "1 was killed");
}

TEST(first_cause, a_loss_that_no_end_explains_is_the_cause_itself) {
    first_cause causes(2);
    causes.note_loss(0, 1);
    causes.note_failure(0, with("0 aborted"));
    EXPECT_EQ(found(causes, cause_wait::reports), "");
    EXPECT_EQ(found(causes, cause_wait::exits),
              "0 aborted"); // all have reported, no rank is ending
}

TEST(first_cause, patience_ends) {
    first_cause causes(2);
    causes.note_closed(1); // and its process goes on
    causes.note_loss(0, std::nullopt);
    causes.note_failure(0, with("0 aborted"));
    EXPECT_EQ(found(causes, cause_wait::exits), "");
    EXPECT_EQ(found(causes, cause_wait::none), "0 aborted");
}

TEST(first_cause, a_wait_in_vain_goes_behind_an_own_failure) {
    first_cause causes(2);
    causes.note_failure(0, with("0 timed out", true));
    EXPECT_EQ(found(causes, cause_wait::reports), "");
    causes.note_failure(1, with("1 was killed"));
    EXPECT_EQ(found(causes, cause_wait::reports), "1 was killed");
}

TEST(first_cause, only_the_first_failure_of_a_rank_counts) {
    first_cause causes(2);
    causes.note_failure(0, with("0 aborted with 5"));
    causes.note_failure(0, with("0 exited with 1"));
    EXPECT_EQ(found(causes, cause_wait::none), "0 aborted with 5");
}

TEST(first_cause, of_two_own_failures_the_first_sign_decides) {
    first_cause causes(3);
    causes.note_closed(2);
    causes.note_closed(0);
    causes.note_failure(0, with("0 crashed since 2 had gone"));
    EXPECT_EQ(found(causes, cause_wait::exits), ""); // rank 2 began to end before
    causes.note_failure(2, with("2 was killed"));
    EXPECT_EQ(found(causes, cause_wait::exits), "2 was killed");
}

TEST(first_cause, a_sign_that_came_later_is_not_waited_for) {
    first_cause causes(3);
    causes.note_failure(0, with("0 was killed"));
    causes.note_closed(2);
    EXPECT_EQ(found(causes, cause_wait::reports), "0 was killed");
}

TEST(first_cause, ranks_that_end_in_good_order_are_not_waited_for) {
    first_cause causes(3);
    causes.note_done(1); // finalized
    causes.note_closed(1);
    causes.note_closed(2);
    causes.note_failure(0, with("0 exited with 3"));
    EXPECT_EQ(found(causes, cause_wait::exits), ""); // 2 began to end before
    causes.note_done(2);                             // with status 0
    EXPECT_EQ(found(causes, cause_wait::exits), "0 exited with 3");
}

TEST(first_cause, a_rank_that_has_lost_a_peer_is_not_waited_for) {
    first_cause causes(3);
    causes.note_loss(2, 1);
    causes.note_closed(2);
    causes.note_failure(1, with("1 was killed"));
    EXPECT_EQ(found(causes, cause_wait::reports), "1 was killed");
}

TEST(first_cause, names_the_peer_that_was_lost) {
    first_cause causes(2);
    EXPECT_FALSE(causes.lost_by(0));
    causes.note_loss(0, std::nullopt);
    EXPECT_FALSE(causes.lost_by(0));
    causes.note_loss(0, 1);
    causes.note_loss(0, std::nullopt);
    EXPECT_EQ(causes.lost_by(0), 1);
}

} // namespace
} // namespace diomp::run
