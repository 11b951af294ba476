// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "orphans.h"

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

/// Returns the process ids in /proc.
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

/// Parses process ids that are separated by blanks.
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

/// Returns the process ids of a process in the PID namespace of /proc and in those nested in it,
/// down to its own.
std::vector<pid_t> namespace_pids(const std::string &status) {
    constexpr std::string_view label = "\nNSpid:";
    auto const at = status.find(label);
    if (at == status.npos) {
        return {};
    }
    auto const begin = at + label.size();
    return parse_pids(status.substr(begin, status.find('\n', begin) - begin));
}

/// Translates process ids of /proc into this process's PID namespace. A container that was made
/// without a /proc of its own sees one of an outer namespace.
class pid_translator {
public:
    pid_translator() {
        if (auto const own = read_file("/proc/thread-self/status")) {
            level_ = namespace_pids(own.value()).size();
        }
    }
    /// Returns whether /proc shows this process.
    [[nodiscard]] bool is_known() const { return level_ > 0; }
    /// Returns the process id in this namespace of the process that /proc shows as `shown`; 0 if it
    /// has ended or is not in this namespace.
    [[nodiscard]] pid_t translate(pid_t shown) const {
        auto const status = read_file(fmt::format("/proc/{}/status", shown));
        auto const numbers = status ? namespace_pids(status.value()) : std::vector<pid_t>();
        return numbers.size() >= level_ ? numbers[level_ - 1] : 0;
    }

private:
    std::size_t level_ = 0; ///< number of PID namespaces from that of /proc to ours
};

/// Returns the process id that a new process gets, by starting one that ends at once.
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

/// Returns the process ids that younger processes may have. Incomplete if there were more than
/// pid_max of them.
std::vector<pid_t> younger_pids() {
    pid_t last = max_pid;
    if (auto const limit = read_file("/proc/sys/kernel/pid_max")) {
        auto const parsed = parse_pids(limit.value());
        last = parsed.empty() ? last : std::min(last, parsed.front());
    }
    pid_t const own = getpid();
    pid_t const newest = newest_pid();
    bool const wrapped = newest < own; // also if no process can be started
    std::vector<pid_t> pids;
    for (pid_t pid = own + 1; pid <= (wrapped ? last : newest); ++pid) {
        pids.push_back(pid);
    }
    for (pid_t pid = 1; wrapped && pid < own; ++pid) {
        pids.push_back(pid);
    }
    return pids;
}

/// Returns process ids that include those of all children.
std::vector<pid_t> candidate_pids() {
    // This process has one thread. The file needs CONFIG_PROC_CHILDREN.
    auto const listed = read_file("/proc/thread-self/children");
    if (proc_is_ours()) {
        return listed ? parse_pids(listed.value()) : all_processes();
    }
    pid_translator const numbers;
    if (!numbers.is_known() || !listed) {
        return younger_pids();
    }
    std::vector<pid_t> pids;
    for (pid_t const shown : parse_pids(listed.value())) {
        pids.push_back(numbers.translate(shown));
    }
    return pids;
}

/// Returns an identifier of the PID namespace of a process; "" if it is not accessible.
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
    std::vector<pid_t> pids = candidate_pids();
    std::erase_if(pids, [](pid_t pid) { return !is_own_child(pid); });
    return pids;
}

bool kill_and_reap_children(pid_t except, double limit_s) {
    auto const deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(limit_s);
    while (true) {
        // In each round: children of a reaped process become children of this one.
        auto children = own_children();
        std::erase(children, except);
        if (children.empty()) {
            return true;
        }
        bool left = false;
        for (pid_t const child : children) {
            kill(child, SIGKILL);
            left = launch::reap_child(child, nullptr, WNOHANG) == 0 || left;
        }
        if (left && std::chrono::steady_clock::now() > deadline) {
            return false;
        }
        if (left) {
            sigset_t child_ended;
            sigemptyset(&child_ended);
            sigaddset(&child_ended, SIGCHLD);
            timespec const interval{0, 20'000'000};
            sigtimedwait(&child_ended, nullptr, &interval);
        }
    }
}

void kill_marked_processes(const std::string &mark) {
    pid_translator const numbers;
    bool const shows_inner_only = proc_is_ours(); // it shows no processes of outer namespaces
    std::string const own_namespace = pid_namespace("self");
    if (!numbers.is_known()) {
        return;
    }
    // With the '\0' before and after the variable, so that the mark of another job never matches.
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
            // Opened before the environment is read, so that the signal cannot reach a later
            // process with the same process id.
            pid_t const pid = numbers.translate(shown);
            unique_fd const process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
            auto const environment = read_file(fmt::format("/proc/{}/environ", shown));
            if (process && environment && numbers.translate(shown) == pid &&
                ('\0' + environment.value()).find(needle) != std::string::npos) {
                found = syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0) == 0 ||
                        found;
            }
        }
    }
}

} // namespace diomp::run
