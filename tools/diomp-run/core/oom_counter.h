// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Detects whether the kernel's OOM killer has ended a process. Its SIGKILL looks like any other,
// but the kernel counts it in the victim's memory cgroup (memory.events of version 2,
// memory.oom_control of version 1; Documentation/admin-guide/cgroup-v2.rst), or in /proc/vmstat for
// the machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace diomp::run {

class oom_counter {
public:
    /// Makes a counter for the memory cgroup of this process and of the processes that it starts.
    /// `root`: root of the file system, for tests.
    static oom_counter of_this_process(const std::string &root = "");

    /// Returns the number of kills so far; nullopt if the kernel does not report it.
    [[nodiscard]] std::optional<std::uint64_t> kills() const;
    /// Explains a SIGKILL: returns "" if no kill has been counted since this counter was made.
    [[nodiscard]] std::string explain_kill() const;
    /// Describes the memory that ran out: "the cgroup /job7, which may use 512.0 MiB", "this
    /// machine".
    [[nodiscard]] std::string describe_scope() const;

private:
    struct mount {
        std::string point;
        std::string group; ///< the part of the hierarchy that is mounted there
    };
    static std::optional<mount> find_mount(const std::string &table, bool version_2);
    [[nodiscard]] std::optional<std::uint64_t> lowest_limit() const;

    std::string events_;             ///< the file with the counter
    std::string folder_;             ///< the cgroup's directory; empty: none
    std::string top_;                ///< where the hierarchy is mounted
    std::string limit_;              ///< name of the file with a cgroup's limit
    std::string group_;              ///< the cgroup's name
    std::uint64_t kills_before_ = 0; ///< when this counter was made
};

} // namespace diomp::run
