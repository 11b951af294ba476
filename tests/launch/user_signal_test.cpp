// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/read_file.h"
#include "core/user_signal.h"

#include <gtest/gtest.h>

#include <csignal>
#include <string>

namespace diomp::run {
namespace {

std::string own_status() { return read_file("/proc/self/status").take(); }

TEST(user_signal, ends_a_process_that_has_no_use_for_it) {
    ASSERT_EQ(std::signal(SIGUSR1, SIG_DFL), SIG_DFL);
    EXPECT_TRUE(would_end(own_status(), SIGUSR1));
}

TEST(user_signal, does_not_end_one_that_catches_or_ignores_it) {
    std::signal(SIGUSR1, [](int) {});
    EXPECT_FALSE(would_end(own_status(), SIGUSR1));
    EXPECT_TRUE(would_end(own_status(), SIGUSR2));
    std::signal(SIGUSR1, SIG_IGN);
    EXPECT_FALSE(would_end(own_status(), SIGUSR1));
    std::signal(SIGUSR1, SIG_DFL);
}

TEST(user_signal, does_not_end_one_that_blocks_it) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, nullptr);
    EXPECT_FALSE(would_end(own_status(), SIGUSR2));
    sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

TEST(user_signal, is_delivered_where_the_kernel_does_not_tell) {
    EXPECT_FALSE(would_end("", SIGUSR1));
    EXPECT_FALSE(would_end("Name:\tapp\nSigBlk:\t0000000000000000\n", SIGUSR1));
    EXPECT_FALSE(would_end("Name:\tapp\nSigBlk:\tx\nSigIgn:\t0\nSigCgt:\t0\n", SIGUSR1));
}

} // namespace
} // namespace diomp::run
