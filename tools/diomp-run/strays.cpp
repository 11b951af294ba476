// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "strays.h"

#include "base/read_file.h"
#include "base/unique_fd.h"
#include "launch/openmp_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <csignal>
#include <dirent.h>
#include <memory>
#include <string>
#include <string_view>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace diomp::run {
namespace {

/// PID_MAX_LIMIT of 64-bit Linux.
constexpr pid_t max_pid = 1 << 22;

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

/// Numbers that blanks separate.
std::vector<pid_t> parse_pids(const std::string &text) {
    std::vector<pid_t> pids;
    const char *next = text.data();
    const char *const end = next + text.size();
    while (next < end) {
        pid_t pid = 0;
        auto const parsed = std::from_chars(next, end, pid);
        if (parsed.ec == std::errc()) {
            pids.push_back(pid);
        }
        next = std::max(parsed.ptr, next + 1);
    }
    return pids;
}

/// The numbers of a process in the PID namespace of /proc and in those within it, down to its own.
std::vector<pid_t> namespace_pids(const std::string &status) {
    constexpr std::string_view label = "\nNSpid:";
    auto const at = status.find(label);
    if (at == status.npos) {
        return {};
    }
    auto const begin = at + label.size();
    return parse_pids(status.substr(begin, status.find('\n', begin) - begin));
}

/// How /proc numbers processes of this process's PID namespace. Another one than ours is mounted
/// where a container has been made without its own.
class proc_numbers {
public:
    proc_numbers() {
        if (auto const own = read_file("/proc/thread-self/status")) {
            level_ = namespace_pids(own.value()).size();
        }
    }
    /// /proc shows this process.
    [[nodiscard]] bool is_known() const { return level_ > 0; }
    /// The number here of the process that /proc shows as `shown`; 0: it has gone, or has none
    /// here.
    [[nodiscard]] pid_t number_here(pid_t shown) const {
        auto const status = read_file(fmt::format("/proc/{}/status", shown));
        auto const numbers = status ? namespace_pids(status.value()) : std::vector<pid_t>();
        return numbers.size() >= level_ ? numbers[level_ - 1] : 0;
    }

private:
    std::size_t level_ = 0; ///< PID namespaces from that of /proc to ours
};

/// The number that a process gets now. The child that has it ends at once.
pid_t newest_pid() {
    pid_t const child = fork();
    if (child == 0) {
        _exit(0);
    }
    if (child > 0) {
        waitpid(child, nullptr, 0);
    }
    return child;
}

/// Numbers of processes younger than this one. Where there have been more than pid_max of them,
/// this may miss some.
std::vector<pid_t> younger_pids() {
    pid_t last = max_pid;
    if (auto const limit = read_file("/proc/sys/kernel/pid_max")) {
        auto const parsed = parse_pids(limit.value());
        last = parsed.empty() ? last : std::min(last, parsed.front());
    }
    pid_t const own = getpid();
    pid_t const newest = newest_pid();
    bool const wrapped = newest < own; // also if there can be no new process
    std::vector<pid_t> pids;
    for (pid_t pid = own + 1; pid <= (wrapped ? last : newest); ++pid) {
        pids.push_back(pid);
    }
    for (pid_t pid = 1; wrapped && pid < own; ++pid) {
        pids.push_back(pid);
    }
    return pids;
}

/// Numbers among which all children are.
std::vector<pid_t> candidates() {
    // This process has one thread. A kernel without CONFIG_PROC_CHILDREN has no such file.
    auto const listed = read_file("/proc/thread-self/children");
    if (proc_is_ours()) {
        return listed ? parse_pids(listed.value()) : all_processes();
    }
    proc_numbers const numbers;
    if (!numbers.is_known() || !listed) {
        return younger_pids();
    }
    std::vector<pid_t> pids;
    for (pid_t const shown : parse_pids(listed.value())) {
        pids.push_back(numbers.number_here(shown));
    }
    return pids;
}

/// The PID namespace of a process, for comparison; "": it cannot be seen.
std::string pid_namespace(const std::string &process) {
    std::array<char, 64> target{};
    ssize_t const size =
        readlink(fmt::format("/proc/{}/ns/pid", process).c_str(), target.data(), target.size());
    return size > 0 ? std::string(target.data(), static_cast<std::size_t>(size)) : "";
}

} // namespace

bool proc_is_ours() {
    std::array<char, 32> target{};
    ssize_t const size = readlink("/proc/self", target.data(), target.size());
    pid_t shown = 0;
    return size > 0 &&
           std::from_chars(target.data(), target.data() + size, shown).ec == std::errc() &&
           shown == getpid();
}

bool is_own_child(pid_t pid) {
    siginfo_t info{};
    return pid > 0 &&
           waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

std::vector<pid_t> own_children() {
    std::vector<pid_t> pids = candidates();
    std::erase_if(pids, [](pid_t pid) { return !is_own_child(pid); });
    return pids;
}

bool kill_and_reap_children(pid_t except, double limit_s) {
    auto const deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(limit_s);
    while (true) {
        // Again after each round: the children of what has been reaped are ours from then on.
        auto children = own_children();
        std::erase(children, except);
        if (children.empty()) {
            return true;
        }
        bool left = false;
        for (pid_t const child : children) {
            kill(child, SIGKILL);
            pid_t const reaped = waitpid(child, nullptr, WNOHANG);
            if (reaped == child) {
                launch::remove_openmp_files(child);
            }
            left = reaped == 0 || left;
        }
        if (left && std::chrono::steady_clock::now() > deadline) {
            return false;
        }
        if (left) {
            sigset_t child_ended;
            sigemptyset(&child_ended);
            sigaddset(&child_ended, SIGCHLD);
            timespec const nap{0, 20'000'000};
            sigtimedwait(&child_ended, nullptr, &nap);
        }
    }
}

void kill_marked_processes(const std::string &mark) {
    proc_numbers const numbers;
    bool const shows_inner_only = proc_is_ours(); // all that it shows have a number here
    std::string const own_namespace = pid_namespace("self");
    if (!numbers.is_known()) {
        return;
    }
    // Surrounded by the zeros that end each variable, so that one job's name cannot be part of
    // another's.
    std::string needle(1, '\0');
    needle += mark;
    needle += '\0';
    constexpr int max_rounds = 100;
    bool found = true;
    for (int round = 0; found && round < max_rounds; ++round) {
        found = false;
        for (pid_t const shown : all_processes()) {
            if (!shows_inner_only && pid_namespace(std::to_string(shown)) != own_namespace) {
                continue;
            }
            // Held before its environment is read, so that the signal reaches no later process of
            // the same number.
            pid_t const pid = numbers.number_here(shown);
            unique_fd const process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
            auto const environment = read_file(fmt::format("/proc/{}/environ", shown));
            if (process && environment && numbers.number_here(shown) == pid &&
                ('\0' + environment.value()).find(needle) != std::string::npos) {
                found = syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0) == 0 ||
                        found;
            }
        }
    }
}

} // namespace diomp::run
