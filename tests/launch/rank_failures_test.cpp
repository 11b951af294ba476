// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "core/rank_failures.h"

#include <gtest/gtest.h>

#include <csignal>
#include <memory>
#include <string>
#include <vector>

namespace diomp::run {
namespace {

class rank_failures_test : public ::testing::Test {
protected:
    void SetUp() override {
        auto loop = event_loop::create();
        ASSERT_TRUE(loop);
        loop_ = std::make_unique<event_loop>(loop.take());
        auto made = rank_failures::create(
            *loop_, 3, {.warn_after_s = 0.05, .timeout_s = 0.1},
            {.describe_rank = [](int rank) { return "rank " + std::to_string(rank); },
             .on_cause =
                 [this](const failure &cause) {
                     causes_.push_back(cause.message);
                     failures_->stop();
                 },
             .on_warning = [this](const std::string &text) { warnings_.push_back(text); }});
        ASSERT_TRUE(made);
        failures_ = made.take();
    }

    std::unique_ptr<event_loop> loop_;
    std::unique_ptr<rank_failures> failures_;
    std::vector<std::string> causes_;
    std::vector<std::string> warnings_;
};

TEST_F(rank_failures_test, an_own_failure_is_the_cause_at_once) {
    failures_->on_exit(1, {.code = 3}, false);
    failures_->on_exit(2, {.code = 4}, false);
    EXPECT_EQ(causes_, std::vector<std::string>{"rank 1 exited with status 3"});
    EXPECT_FALSE(failures_->take_poll_request());
}

TEST_F(rank_failures_test, a_consequence_waits_for_its_cause) {
    failures_->on_loss(0, 1);
    failures_->on_abort(0, 7);
    EXPECT_TRUE(causes_.empty());
    EXPECT_TRUE(failures_->take_poll_request());
    EXPECT_FALSE(failures_->take_poll_request());
    failures_->on_exit(1, {.code = 5}, false);
    EXPECT_EQ(causes_, std::vector<std::string>{"rank 1 exited with status 5"});
}

TEST_F(rank_failures_test, a_consequence_is_the_cause_when_no_more_events_come) {
    failures_->on_loss(0, 1);
    failures_->on_abort(0, 7);
    failures_->stop_waiting();
    EXPECT_EQ(causes_, std::vector<std::string>{
                           "rank 0 aborted the job with status 7, after it had lost rank 1"});
}

TEST_F(rank_failures_test, an_exit_without_finalize_among_ranks_that_have_joined_is_a_failure) {
    failures_->on_join(0);
    failures_->on_join(1);
    failures_->on_exit(1, {}, false);
    ASSERT_EQ(causes_.size(), 1U);
    EXPECT_TRUE(causes_.front().starts_with("rank 1 "));
}

TEST_F(rank_failures_test, ranks_that_have_not_joined_are_named_and_then_end_the_job) {
    failures_->on_join(1);
    ASSERT_TRUE(loop_->run_once());
    ASSERT_TRUE(loop_->run_once());
    EXPECT_EQ(warnings_, std::vector<std::string>{"warning: rank 0, rank 2 have not joined the "
                                                  "job; the others have waited for 0.05 s"});
    EXPECT_EQ(causes_, std::vector<std::string>{
                           "rank 0, rank 2 have not joined the job; the others have waited for "
                           "0.1 s (DIOMP_TIMEOUT); ending the job"});
}

TEST_F(rank_failures_test, ranks_that_do_not_continue_their_start_are_named) {
    for (int const rank : {0, 1, 2}) {
        failures_->on_join(rank);
    }
    failures_->on_fence_done();
    failures_->on_fence([] { return std::vector<std::string>{"a rank of host b"}; });
    ASSERT_TRUE(loop_->run_once());
    EXPECT_EQ(warnings_, std::vector<std::string>{
                             "warning: a rank of host b has not reached a fence at the "
                             "start or end of the job; the others have waited for 0.05 s"});
}

TEST_F(rank_failures_test, a_job_that_ends_waits_for_no_rank) {
    failures_->on_join(0);
    failures_->on_exit(1, {.code = 3}, false);
    failures_->on_join(2);
    auto late = add_timer(*loop_, [] {});
    ASSERT_TRUE(late);
    late.value()->arm(0.2);
    ASSERT_TRUE(loop_->run_once());
    EXPECT_TRUE(warnings_.empty());
    EXPECT_EQ(causes_.size(), 1U);
}

} // namespace
} // namespace diomp::run
