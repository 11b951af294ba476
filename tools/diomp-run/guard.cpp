// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "guard.h"

#include "strays.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace diomp::run {
namespace {

[[noreturn]] void keep_watch(int pipe, const std::string &mark) {
    prctl(PR_SET_NAME, "diomp-run-guard");
    setsid(); // out of reach of the terminal's signals
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
    // Above all not the user's standard output: its reader waits for the end of the file.
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
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) {
        return system_error("pipe2", errno);
    }
    unique_fd const reading(ends[0]);
    unique_fd writing(ends[1]);
    pid_t const pid = fork();
    if (pid < 0) {
        return system_error("fork", errno);
    }
    if (pid == 0) {
        keep_watch(reading.get(), mark);
    }
    return guard(pid, std::move(writing));
}

guard::guard(guard &&other) noexcept
    : pid_(std::exchange(other.pid_, -1)), pipe_(std::move(other.pipe_)) {}

guard::~guard() {
    if (pid_ > 0) {
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }
}

void guard::watch(pid_t group) {
    [[maybe_unused]] auto const size = write(pipe_.get(), &group, sizeof group);
}

} // namespace diomp::run
