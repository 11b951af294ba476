// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The call stacks of this process' threads. Each thread is interrupted by a signal and notes the
// addresses of its own frames; everything else is done by the thread that asks.
//
// Nothing is installed before that moment. The signal is then a real-time one that the program does
// not use: it has no handler and no thread blocks it. Threads that block all signals, such as the
// runtime's own, are not asked.
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

/// Written by the thread that it is about, in a signal handler.
struct thread_stack {
    static constexpr std::size_t max_frames = 64;

    pid_t thread = 0;
    std::string name;
    std::atomic<bool> is_there{false}; ///< what follows has been written
    std::size_t num_frames = 0;
    std::array<std::uintptr_t, max_frames> frames{};
    const char *function = nullptr; ///< of the public interface, that it is in
    bool waits = false;             ///< and will describe it
    std::atomic<bool> is_described{false};
    std::size_t text_size = 0;
    std::array<char, 1024> text{};

    /// What it waits for; cut to what fits. By the thread itself, outside of handlers.
    void describe_wait(std::string_view what);
    /// "" if it does not wait, or has not said for what.
    [[nodiscard]] std::string_view description() const {
        return is_described.load(std::memory_order_acquire)
                   ? std::string_view(text.data(), text_size)
                   : std::string_view();
    }
};

struct all_stacks {
    std::vector<const thread_stack *> there;
    std::vector<const thread_stack *> silent; ///< asked, but they have not answered in time
    bool had_signal = false;                  ///< else only the calling thread is there
};

/// Takes some milliseconds, half a second if threads do not answer. Once in the life of a process:
/// what threads write to stays for ever, since a late one may still do so. One thread at a time.
all_stacks collect();

} // namespace diomp::stacks
