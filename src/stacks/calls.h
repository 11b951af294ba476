// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which threads are inside public calls, for the thread that ends the runtime.
//
// A call stores its name in thread-local memory, then reads whether the runtime is there: plain
// stores and loads. The thread that ends the runtime first makes it unavailable, then waits until
// all cores have seen that (await_visibility), then looks at the names: a call that it does not
// find has found no runtime.
#pragma once

#include <optional>
#include <sys/types.h>

namespace diomp::stacks {

/// A public call of another thread.
struct call_elsewhere {
    pid_t thread;
    const char *function; ///< a literal
};

/// Returns when every thread sees what the caller has stored before, and the caller sees the public
/// calls that began before they did.
void await_visibility();

/// A public call that another thread is in; nothing if there is none.
[[nodiscard]] std::optional<call_elsewhere> find_call_elsewhere();

/// The calling thread's public calls count as over although they never return: it does not touch
/// the runtime any more.
void leave_calls();

/// In a forked child: the other threads are not there.
void forget_other_threads();

} // namespace diomp::stacks
