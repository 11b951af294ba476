// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/unique_fd.h"
#include "core/report.h"
#include "core/spawn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

namespace diomp::run {
namespace {

class spawning : public testing::Test {
protected:
    spawning() {
        getrlimit(RLIMIT_NOFILE, &request_.open_files);
        request_.signals = original_signals::of_this_process();
        request_.standard_input = request_.standard_output = request_.standard_error = null_.get();
        request_.environment = {"PATH=/usr/bin:/bin"};
    }

    void run(std::vector<std::string> words) {
        request_.path = words.front();
        request_.arguments = std::move(words);
        auto spawned = spawn(request_);
        ASSERT_TRUE(spawned) << spawned.failure().message();
        process_ = spawned.take();
    }

    exit_info wait_for_end() const {
        siginfo_t info{};
        EXPECT_EQ(waitid(P_PID, static_cast<id_t>(process_.pid()), &info, WEXITED | WNOWAIT), 0);
        auto const how = peek_exit(process_.pid());
        waitpid(process_.pid(), nullptr, 0);
        return how.value_or(exit_info{});
    }

    unique_fd null_{open("/dev/null", O_RDWR | O_CLOEXEC)};
    spawn_request request_;
    spawned_process process_;
};

TEST_F(spawning, a_program_that_cannot_be_executed_is_told_from_one_that_fails) {
    run({"/bin/sh", "-c", "exit 1"});
    EXPECT_EQ(wait_for_end().code, 1);
    EXPECT_FALSE(process_.start_failure());
    run({"/no/such/program"});
    wait_for_end();
    ASSERT_TRUE(process_.start_failure());
    EXPECT_THAT(process_.start_failure()->message(),
                testing::HasSubstr("cannot execute /no/such/program: No such file"));
}

TEST_F(spawning, the_group_can_be_signalled_at_once) {
    for (int round = 0; round < 50; ++round) {
        run({"/bin/sleep", "60"});
        ASSERT_EQ(kill(-process_.pid(), SIGTERM), 0);
        EXPECT_EQ(wait_for_end().signal, SIGTERM);
    }
}

TEST_F(spawning, signals_that_are_ignored_at_the_start_stay_so) {
    for (int const signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1}) {
        auto const before = std::signal(signal, SIG_IGN);
        request_.signals = original_signals::of_this_process();
        EXPECT_TRUE(request_.signals.ignores(signal));
        std::signal(signal, SIG_DFL);
        run({"/bin/sh", "-c",
             "read -r _ ignored <<END\n$(grep SigIgn /proc/self/status)\nEND\n"
             "exit $(((0x$ignored >> " +
                 std::to_string(signal - 1) + ") & 1))"});
        EXPECT_EQ(wait_for_end().code, 1) << signal_name(signal);
        std::signal(signal, before);
    }
}

/// A processor that a real-time program has for itself never runs the child. Needs the right to
/// start one.
TEST_F(spawning, a_bound_start_does_not_wait_for_a_busy_processor) {
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof allowed, &allowed);
    if (CPU_COUNT(&allowed) < 2) {
        GTEST_SKIP() << "one processor";
    }
    int busy = 0;
    while (!CPU_ISSET(busy, &allowed)) {
        ++busy;
    }
    cpu_set_t elsewhere = allowed;
    CPU_CLR(busy, &elsewhere);
    ASSERT_EQ(sched_setaffinity(0, sizeof elsewhere, &elsewhere), 0);
    std::vector<pid_t> hogs;
    for (int i = 0; i < 40; ++i) {
        pid_t const hog = fork();
        if (hog == 0) {
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(busy, &one);
            sched_setaffinity(0, sizeof one, &one);
            while (true) {
            }
        }
        hogs.push_back(hog);
    }
    request_.cpus = {busy};
    constexpr int starts = 20;
    std::vector<pid_t> started;
    auto const start_all = [&] {
        auto const begin = std::chrono::steady_clock::now();
        for (int i = 0; i < starts; ++i) {
            run({"/bin/true"});
            started.push_back(process_.pid());
        }
        return std::chrono::steady_clock::now() - begin;
    };
    auto const lasted = start_all();
    request_.cpus.clear();
    auto const lasted_unbound = start_all();
    for (auto const *const group : {&hogs, &started}) {
        for (pid_t const pid : *group) {
            kill(pid, SIGKILL);
            waitpid(pid, nullptr, 0);
        }
    }
    sched_setaffinity(0, sizeof allowed, &allowed);
    // Each child gets a turn after 40 others on its processor: 20 of them take seconds if they are
    // waited for, and as long as unbound ones if not.
    EXPECT_LT(lasted, std::chrono::milliseconds(500) + 2 * lasted_unbound);
}

} // namespace
} // namespace diomp::run
