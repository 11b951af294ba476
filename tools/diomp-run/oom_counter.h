// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whether the kernel's OOM killer has ended a process: it sends SIGKILL like anybody else, but it
// counts that in the victim's memory cgroup (memory.events of version 2, memory.oom_control of
// version 1; Documentation/admin-guide/cgroup-v2.rst), or in /proc/vmstat for the whole machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace diomp::run {

class oom_counter {
public:
    /// Of the memory cgroup of this process, and so of the processes that it starts. `root`: of the
    /// file system, for tests.
    static oom_counter of_this_process(const std::string &root = "");

    /// Kills so far; nothing if the kernel does not say.
    [[nodiscard]] std::optional<std::uint64_t> kills() const;
    /// Where memory was short: "the cgroup /job7, which may use 512.0 MiB", "this machine".
    [[nodiscard]] std::string describe_place() const;

private:
    struct mount {
        std::string point;
        std::string group; ///< what of the hierarchy is mounted there
    };
    static std::optional<mount> find_mount(const std::string &table, bool version_2);
    [[nodiscard]] std::optional<std::uint64_t> lowest_limit() const;

    std::string events_; ///< the file that counts
    std::string folder_; ///< the cgroup's; empty: there is none
    std::string top_;    ///< where the hierarchy is mounted
    std::string limit_;  ///< name of the file with a cgroup's limit
    std::string group_;  ///< its name
};

} // namespace diomp::run
