// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notices that ranks of this node have ended, in jobs whose launcher does not end all ranks then:
// over shared memory nothing else shows it. Each rank holds a record lock in a file of the node,
// which the system releases with the process however it ends.
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "base/unique_fd.h"

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace diomp::transport {

/// Locks a byte of a file for this process; false if the system has no such locks there.
bool lock_record(int fd, std::size_t at);
/// Whether another process has locked it.
bool is_record_locked(int fd, std::size_t at);

/// Any thread.
class node_watch {
public:
    /// The ranks of the node, of which `self` is one, and a file that all of them have
    /// (found_node::file). Locks the record of this rank.
    static result<std::unique_ptr<node_watch>> create(unique_fd file, std::vector<world_rank> ranks,
                                                      world_rank self);
    ~node_watch();
    node_watch(const node_watch &) = delete;
    node_watch &operator=(const node_watch &) = delete;

    /// False for ranks of other nodes. One system call. Call, as start(), after a fence that
    /// follows create() on all ranks.
    [[nodiscard]] bool has_ended(world_rank peer) const;
    /// Starts a thread that looks at the other ranks and calls `report` for each one that has
    /// ended, once.
    void start(std::function<void(world_rank, std::string)> report);

private:
    node_watch(unique_fd file, std::vector<world_rank> ranks, world_rank self);
    void run(const std::function<void(world_rank, std::string)> &report);

    unique_fd file_;
    std::vector<world_rank> ranks_;
    world_rank self_;
    std::atomic<bool> stopping_{false};
    std::thread thread_;
};

} // namespace diomp::transport
