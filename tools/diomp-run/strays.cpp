// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "strays.h"

#include "launch/openmp_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <dirent.h>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <sys/wait.h>
#include <unistd.h>

namespace diomp::run {
namespace {

std::string read_whole(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// The numbers among the names in /proc.
std::vector<pid_t> all_processes() {
    std::vector<pid_t> pids;
    std::unique_ptr<DIR, int (*)(DIR *)> const directory(opendir("/proc"), closedir);
    while (directory) {
        const dirent *const item = readdir(directory.get());
        if (item == nullptr) {
            break;
        }
        std::string_view const name(item->d_name);
        pid_t pid = 0;
        auto const parsed = std::from_chars(name.begin(), name.end(), pid);
        if (parsed.ec == std::errc() && parsed.ptr == name.end()) {
            pids.push_back(pid);
        }
    }
    return pids;
}

/// Parent of a process, from /proc/PID/stat: "pid (name) state ppid ...". The name may hold
/// anything, so look for its last parenthesis.
pid_t parent_of(pid_t pid) {
    std::string const text = read_whole(fmt::format("/proc/{}/stat", pid));
    auto const name_end = text.rfind(") ");
    pid_t parent = -1;
    if (name_end != std::string::npos && name_end + 4 < text.size()) {
        std::from_chars(text.data() + name_end + 4, text.data() + text.size(), parent);
    }
    return parent;
}

} // namespace

std::vector<pid_t> own_children() {
    std::ifstream file(fmt::format("/proc/self/task/{}/children", getpid()));
    std::vector<pid_t> children;
    if (file) {
        children.assign(std::istream_iterator<pid_t>(file), {});
        return children;
    }
    // A kernel without CONFIG_PROC_CHILDREN.
    for (pid_t const pid : all_processes()) {
        if (parent_of(pid) == getpid()) {
            children.push_back(pid);
        }
    }
    return children;
}

bool kill_and_reap_children(pid_t except, double limit_s) {
    auto const deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(limit_s);
    while (true) {
        bool left = false;
        for (pid_t const child : own_children()) {
            if (child != except) {
                kill(child, SIGKILL);
                pid_t const reaped = waitpid(child, nullptr, WNOHANG);
                if (reaped == child) {
                    launch::remove_openmp_files(child);
                }
                left = reaped == 0 || left;
            }
        }
        if (!left) {
            // One more look: the children of what was reaped just now are ours from here on.
            std::vector<pid_t> const rest = own_children();
            if (std::ranges::all_of(rest, [except](pid_t pid) { return pid == except; })) {
                return true;
            }
            continue;
        }
        if (std::chrono::steady_clock::now() > deadline) {
            return false;
        }
        sigset_t child_ended;
        sigemptyset(&child_ended);
        sigaddset(&child_ended, SIGCHLD);
        timespec const nap{0, 20'000'000};
        sigtimedwait(&child_ended, nullptr, &nap);
    }
}

void kill_marked_processes(const std::string &mark) {
    // Surrounded by the zeros that end each variable, so that one job's name cannot be part of
    // another's.
    std::string needle(1, '\0');
    needle += mark;
    needle += '\0';
    constexpr int max_rounds = 100;
    bool found = true;
    for (int round = 0; found && round < max_rounds; ++round) {
        found = false;
        for (pid_t const pid : all_processes()) {
            std::string environment(1, '\0');
            environment += read_whole(fmt::format("/proc/{}/environ", pid));
            if (environment.find(needle) != std::string::npos) {
                found = kill(pid, SIGKILL) == 0 || found;
            }
        }
    }
}

} // namespace diomp::run
