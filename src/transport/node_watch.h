// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notices that ranks of this node have ended, in jobs whose launcher does not end all ranks then:
// over shared memory nothing else shows it. The system says so by a descriptor of each process.
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "base/unique_fd.h"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <sys/types.h>
#include <thread>
#include <vector>

namespace diomp::transport {

/// The process of a rank.
struct peer_process {
    world_rank rank;
    pid_t pid = 0;
};

/// Whether the system has descriptors of processes (Linux 5.3), and permits them.
bool has_process_descriptors();
/// The descriptor of a process, readable when it ends; invalid if the system gives none.
unique_fd open_process(pid_t pid);

/// Any thread.
class node_watch {
public:
    /// Other ranks of the node. Call before a fence of all of them: they exist then, so that no
    /// other process has got their numbers. Errors: OMPX_ERR_SYSTEM, also if one has ended.
    static result<std::unique_ptr<node_watch>> create(std::span<const peer_process> others);
    ~node_watch();
    /// Another rank, by the descriptor that it has passed. Call before start() and has_ended().
    void add(world_rank other, unique_fd process);
    node_watch(const node_watch &) = delete;
    node_watch &operator=(const node_watch &) = delete;

    /// False for ranks of other nodes. One system call.
    [[nodiscard]] bool has_ended(world_rank peer) const;
    /// Starts a thread that sleeps until a rank ends, and calls `report` for each one, once.
    void start(std::function<void(world_rank, std::string)> report);

private:
    struct watched {
        world_rank rank;
        unique_fd process;
    };

    explicit node_watch(unique_fd stop) : stop_(std::move(stop)) {}
    void run(const std::function<void(world_rank, std::string)> &report) const;

    unique_fd stop_; ///< readable: the thread ends
    std::vector<watched> others_;
    std::thread thread_;
};

} // namespace diomp::transport
