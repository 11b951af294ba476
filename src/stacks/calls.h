// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The threads inside public calls, for the thread that ends the runtime.
//
// A call stores its name in thread-local memory, then reads whether the runtime exists: plain
// stores and loads. The thread that ends the runtime first makes it unavailable, then waits until
// all cores see that (wait_for_visibility), then reads the names: a call that is not found did not
// find the runtime either.
#pragma once

#include <optional>
#include <sys/types.h>

namespace diomp::stacks {

/// A public call of another thread.
struct call_elsewhere {
    pid_t thread;
    const char *function; ///< a literal
};

/// Returns when every thread sees the caller's earlier stores, and the caller sees the public calls
/// that began before that.
void wait_for_visibility();

/// A public call that another thread is in; nullopt if there is none.
[[nodiscard]] std::optional<call_elsewhere> find_call_elsewhere();

/// Marks the calling thread's public calls as ended although they never return. The thread must not
/// use the runtime any more.
void leave_calls();

/// To be called in a forked child, where the other threads do not exist.
void reset_after_fork();

} // namespace diomp::stacks
