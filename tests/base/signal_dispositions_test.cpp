// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/signal_dispositions.h"

#include <gtest/gtest.h>

namespace diomp {
namespace {

using handler = void (*)(int);

handler disposition(int signal) {
    struct sigaction now{};
    sigaction(signal, nullptr, &now);
    return now.sa_handler;
}

class signal_dispositions : public testing::Test {
protected:
    static constexpr int signals[] = {SIGHUP, SIGUSR1, SIGUSR2};
    void SetUp() override { set_all(SIG_DFL); }
    void TearDown() override { set_all(SIG_DFL); }
    static void set_all(handler to) {
        for (int const each : signals) {
            std::signal(each, to);
        }
    }
};

TEST_F(signal_dispositions, lists_what_is_ignored) {
    std::signal(SIGHUP, SIG_IGN);
    std::signal(SIGUSR1, [](int) {});
    auto const found = original_signals::of_this_process();
    EXPECT_TRUE(found.ignores(SIGHUP));
    EXPECT_FALSE(found.ignores(SIGUSR1)); // exec gives it the default back
    EXPECT_FALSE(found.ignores(SIGUSR2));
    EXPECT_EQ(found.ignored_list().substr(0, 1), "1");
}

TEST_F(signal_dispositions, restores_what_was) {
    std::signal(SIGHUP, SIG_IGN);
    auto const found = original_signals::of_this_process();
    std::signal(SIGHUP, SIG_DFL);
    std::signal(SIGUSR2, SIG_IGN);
    found.restore_dispositions();
    EXPECT_EQ(disposition(SIGHUP), SIG_IGN);
    EXPECT_EQ(disposition(SIGUSR2), SIG_DFL);
}

TEST_F(signal_dispositions, a_list_is_taken_over_and_nonsense_is_not) {
    ignore_signals("1,12,,x,999999999999,-3,0,9");
    EXPECT_EQ(disposition(SIGHUP), SIG_IGN);
    EXPECT_EQ(disposition(SIGUSR2), SIG_IGN);
    EXPECT_EQ(disposition(SIGUSR1), SIG_DFL);
    auto const found = original_signals::of_this_process();
    std::signal(SIGHUP, SIG_DFL);
    std::signal(SIGUSR2, SIG_DFL);
    ignore_signals(found.ignored_list());
    EXPECT_EQ(disposition(SIGUSR2), SIG_IGN);
}

} // namespace
} // namespace diomp
