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

/// What other threads see of a thread (calls.h).
struct caller {
    std::atomic<const char *> function{nullptr}; ///< of its innermost public call; null: outside
    bool is_listed = false;                      ///< others can find it
};

/// A public call, on the stack of its thread. Costs three stores each way.
class public_call {
public:
    /// `function` is a literal; `arguments` outlives the object.
    public_call(const char *function, function_ref<std::string()> arguments)
        : function_(function), arguments_(arguments), outer_(t_innermost) {
        if (!t_caller.is_listed) [[unlikely]] {
            list_thread();
        }
        t_innermost = this;
        t_caller.function.store(function, std::memory_order_relaxed);
        // The thread that ends the runtime sees this call, or what follows here sees its end.
        std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    ~public_call() {
        t_innermost = outer_;
        t_caller.function.store(outer_ == nullptr ? nullptr : outer_->function_,
                                std::memory_order_release);
    }
    public_call(const public_call &) = delete;
    public_call &operator=(const public_call &) = delete;

    /// Of the calling thread; nullptr outside of calls.
    static const public_call *innermost() { return t_innermost; }
    [[nodiscard]] const char *function() const { return function_; }
    [[nodiscard]] std::string arguments() const { return arguments_(); }

private:
    friend void leave_calls();
    static void list_thread();

    constinit static thread_local const public_call *t_innermost;
    constinit static thread_local caller t_caller;

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
