// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ends a rank whose launcher has ended. diomp-run's ranks have a parent-death signal instead; other
// launchers kill the ranks of a job that fails, but not when a process of their own is killed.
#pragma once

#include "base/ids.h"
#include "base/unique_fd.h"

#include <thread>

namespace diomp::launch {

class end_watch {
public:
    end_watch() = default;
    ~end_watch() { stop(); }
    end_watch(const end_watch &) = delete;
    end_watch &operator=(const end_watch &) = delete;

    /// Starts a thread that sleeps until `launcher_end` is readable, then writes a message and ends
    /// the process with status 1. Does nothing if the descriptor is invalid. The descriptor must
    /// stay open until stop(). Call once.
    void start(int launcher_end, world_rank self);
    /// Call before the rank tells its launcher that it ends. Blocks until the thread has ended.
    void stop();

private:
    unique_fd stop_;
    std::thread thread_;
};

} // namespace diomp::launch
