// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The call stacks of this process's threads. A signal interrupts each thread, whose handler records
// the addresses of its own frames; the requesting thread does the rest.
//
// No handler is installed before that. The signal is then a real-time signal that the program does
// not use: it has no handler and no thread blocks it. Threads that block all signals, such as the
// runtime's own, are left out.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace diomp::stacks {

/// A thread's stack, written by that thread in a signal handler.
struct thread_stack {
    static constexpr std::size_t max_frames = 64;

    pid_t thread = 0;
    std::string name;
    std::atomic<bool> is_recorded{false}; ///< the following members have been written
    std::size_t num_frames = 0;
    std::array<std::uintptr_t, max_frames> frames{};
    const char *function = nullptr; ///< innermost public function, or nullptr
    bool waits = false;             ///< waits, and will describe the wait
    std::atomic<bool> is_described{false};
    std::size_t text_size = 0;
    std::array<char, 1024> text{};

    /// Stores what the thread waits for, truncated. Called by the thread itself, outside of
    /// handlers.
    void describe_wait(std::string_view what);
    /// "" if the thread does not wait, or has not described its wait.
    [[nodiscard]] std::string_view description() const {
        return is_described.load(std::memory_order_acquire)
                   ? std::string_view(text.data(), text_size)
                   : std::string_view();
    }
};

struct all_stacks {
    std::vector<const thread_stack *> recorded;
    std::vector<const thread_stack *> silent; ///< signalled, but did not respond in time
    bool had_signal = false;                  ///< false: only the calling thread is recorded
};

/// Records the stacks of all threads. Blocks for some milliseconds, half a second if threads do not
/// respond. The memory, 2 KiB per thread, is never freed, since a late thread may still write to
/// it. One thread at a time.
all_stacks collect_stacks();

} // namespace diomp::stacks
