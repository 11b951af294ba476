// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "core/job_end.h"

#include <gtest/gtest.h>

#include <csignal>
#include <memory>
#include <string>
#include <vector>

namespace diomp::run {
namespace {

class job_end_test : public ::testing::Test, private rank_control {
protected:
    void SetUp() override {
        auto loop = event_loop::create();
        ASSERT_TRUE(loop);
        loop_ = std::make_unique<event_loop>(loop.take());
        auto made = job_end::create(*loop_, *this, [this] { steps_.emplace_back("begin"); });
        ASSERT_TRUE(made);
        end_ = made.take();
    }
    void end_ranks(int signal, bool notify) override {
        steps_.push_back("signal " + std::to_string(signal) + (notify ? " notify" : ""));
    }
    void kill_ranks() override { steps_.emplace_back("kill"); }
    void signal_ranks(int /*signal*/) override {}
    void request_stacks() override { steps_.emplace_back("stacks"); }

    std::unique_ptr<event_loop> loop_;
    std::unique_ptr<job_end> end_;
    std::vector<std::string> steps_;
};

TEST_F(job_end_test, ranks_are_signalled_after_they_have_shown_their_stacks) {
    EXPECT_TRUE(end_->is_running());
    end_->show_and_end(SIGTERM, true);
    EXPECT_FALSE(end_->is_running());
    EXPECT_EQ(steps_, (std::vector<std::string>{"begin", "stacks"}));
    end_->on_stacks_done();
    end_->on_stacks_done(); // too late
    EXPECT_EQ(steps_, (std::vector<std::string>{"begin", "stacks", "begin", "signal 15 notify"}));
}

TEST_F(job_end_test, a_limit_ends_the_wait_for_stacks) {
    end_->show_and_end(SIGQUIT, false);
    ASSERT_TRUE(loop_->run_once());
    EXPECT_EQ(steps_.back(), "signal 3");
}

TEST_F(job_end_test, stacks_do_not_matter_once_the_ranks_are_killed) {
    end_->show_and_end(SIGTERM, true);
    end_->kill();
    end_->on_stacks_done();
    EXPECT_EQ(steps_.back(), "kill");
}

} // namespace
} // namespace diomp::run
