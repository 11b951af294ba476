// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// On a machine whose /proc is its own; tests/launch/namespaces_test.py has the others.
#include "core/orphans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

namespace diomp::run {
namespace {

pid_t start_sleeper() {
    pid_t const pid = fork();
    if (pid == 0) {
        pause();
        _exit(0);
    }
    return pid;
}

TEST(strays, children_are_those_that_the_kernel_calls_so) {
    ASSERT_TRUE(proc_is_ours());
    pid_t const child = start_sleeper();
    EXPECT_TRUE(is_own_child(child));
    EXPECT_FALSE(is_own_child(getppid()));
    EXPECT_FALSE(is_own_child(1));
    EXPECT_THAT(own_children(), testing::Contains(child));
    EXPECT_TRUE(kill_and_reap_children(-1, 10));
    EXPECT_FALSE(is_own_child(child));
    EXPECT_THAT(own_children(), testing::IsEmpty());
}

TEST(strays, one_child_may_stay) {
    pid_t const kept = start_sleeper();
    pid_t const other = start_sleeper();
    EXPECT_TRUE(kill_and_reap_children(kept, 10));
    EXPECT_FALSE(is_own_child(other));
    EXPECT_TRUE(is_own_child(kept));
    kill(kept, SIGKILL);
    waitpid(kept, nullptr, 0);
}

} // namespace
} // namespace diomp::run
