// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a thread knows of itself when its stack is to be shown: the public call it is in and what it
// waits for. Only the thread itself can put that into words, so it is asked and answers when its
// wait looks at the clock next.
#pragma once

#include "base/function_ref.h"

#include <atomic>
#include <string>
#include <string_view>

namespace diomp::stacks {

struct thread_stack;

/// A public call, on the stack of its thread. Costs two stores each way.
class public_call {
public:
    /// `function` is a literal; `arguments` outlives the object.
    public_call(const char *function, function_ref<std::string()> arguments)
        : function_(function), arguments_(arguments), outer_(t_innermost) {
        t_innermost = this;
    }
    ~public_call() { t_innermost = outer_; }
    public_call(const public_call &) = delete;
    public_call &operator=(const public_call &) = delete;

    /// Of the calling thread; nullptr outside of calls.
    static const public_call *innermost() { return t_innermost; }
    [[nodiscard]] const char *function() const { return function_; }
    [[nodiscard]] std::string arguments() const { return arguments_(); }

private:
    constinit static thread_local const public_call *t_innermost;

    const char *function_;
    function_ref<std::string()> arguments_;
    const public_call *outer_;
};

/// A wait of the calling thread that will answer.
class waiting {
public:
    waiting() { ++t_depth; }
    ~waiting();
    waiting(const waiting &) = delete;
    waiting &operator=(const waiting &) = delete;

    /// Whether somebody wants to know what this thread waits for.
    [[nodiscard]] bool is_asked() const { return t_asker.load(std::memory_order_relaxed); }
    /// "waiting for rank 1 in ompx_barrier()". Adds the public call.
    void answer(std::string_view text) noexcept;

    /// For the signal handler: asks the thread that it interrupts. False if it does not wait.
    static bool ask(thread_stack &asker);

private:
    constinit static thread_local int t_depth;
    constinit static thread_local std::atomic<thread_stack *> t_asker;
};

} // namespace diomp::stacks
