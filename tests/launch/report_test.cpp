// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "core/report.h"

#include <gtest/gtest.h>

#include <csignal>

namespace diomp::run {
namespace {

TEST(report, says_how_a_process_ended) {
    EXPECT_EQ(describe({3, 0, false}), "exited with status 3");
    EXPECT_EQ(describe({0, SIGSEGV, false}),
              "was killed by signal 11 (SIGSEGV, Segmentation fault)");
    EXPECT_EQ(describe({0, SIGABRT, true}),
              "was killed by signal 6 (SIGABRT, Aborted; core dumped)");
}

TEST(report, errors_with_what_to_do_about_them) {
    EXPECT_EQ(describe(error(OMPX_ERR_SYSTEM, "no room")), "no room");
    EXPECT_EQ(describe(error(OMPX_ERR_SYSTEM, "no room", "make some")), "no room; make some");
    EXPECT_EQ(describe(system_error("pipe2", EMFILE)),
              "pipe2: Too many open files; raise the limit on open files (ulimit -n)");
    EXPECT_EQ(describe(system_error("pipe2", EMFILE, "fewer ranks")),
              "pipe2: Too many open files; fewer ranks");
}

TEST(report, exit_statuses_are_the_shells) {
    EXPECT_EQ((exit_info{3, 0, false}.status()), 3);
    EXPECT_EQ((exit_info{0, SIGKILL, false}.status()), 137);
    EXPECT_TRUE((exit_info{}.success()));
    EXPECT_FALSE((exit_info{0, SIGTERM, false}.success()));
}

TEST(report, a_signal_without_a_name_has_its_number) {
    EXPECT_EQ(signal_name(SIGRTMIN + 3), "signal " + std::to_string(SIGRTMIN + 3));
}

} // namespace
} // namespace diomp::run
