// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "guard.h"

#include "orphans.h"
#include "pipe.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace diomp::run {
namespace {

[[noreturn]] void run_guard(int pipe, const std::string &mark) {
    prctl(PR_SET_NAME, "diomp-run-guard");
    setsid(); // out of reach of the terminal's signals
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
    // Most important is the user's standard output: its reader waits for end of file.
    if (pipe > 0) {
        close_range(0, static_cast<unsigned>(pipe) - 1, 0);
    }
    close_range(static_cast<unsigned>(pipe) + 1, ~0U, 0);
    std::vector<pid_t> groups;
    pid_t group = 0;
    while (true) {
        ssize_t const size = read(pipe, &group, sizeof group);
        if (size == sizeof group) {
            groups.push_back(group);
        } else if (size >= 0 || errno != EINTR) {
            break;
        }
    }
    for (pid_t const each : groups) {
        kill(-each, SIGKILL);
    }
    kill_marked_processes(mark);
    _exit(0);
}

} // namespace

result<guard> guard::start(const std::string &mark) {
    auto opened = open_pipe();
    DIOMP_TRY(opened);
    pipe_ends ends = opened.take();
    pid_t const pid = fork();
    if (pid < 0) {
        return system_error("fork", errno);
    }
    if (pid == 0) {
        run_guard(ends.reading.get(), mark);
    }
    return guard(pid, std::move(ends.writing));
}

guard::guard(guard &&other) noexcept
    : pid_(std::exchange(other.pid_, -1)), pipe_(std::move(other.pipe_)) {}

guard::~guard() = default; // closes the pipe, which wakes the guard process

void guard::dismiss() {
    if (pid_ > 0) {
        kill(pid_, SIGKILL);
        waitpid(std::exchange(pid_, -1), nullptr, 0);
    }
}

void guard::monitor(pid_t group) {
    [[maybe_unused]] auto const size = write(pipe_.get(), &group, sizeof group);
}

} // namespace diomp::run
