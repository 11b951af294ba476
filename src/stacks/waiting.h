// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The state of a thread that is printed with its stack: its public call and the object of its wait.
// Only the thread itself can describe its wait, so a request is stored, and the thread answers it
// when its wait checks the clock next.
#pragma once

#include "base/function_ref.h"

#include <atomic>
#include <string>
#include <string_view>

namespace diomp::stacks {

struct thread_stack;

/// The state of a thread that other threads read (calls.h).
struct caller {
    std::atomic<const char *> function{nullptr}; ///< innermost public call; null: outside of calls
    bool is_listed = false;                      ///< other threads can find it
};

/// A public call, on the stack of its thread. Entry and exit cost three stores each.
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
        // Either the thread that ends the runtime sees this call, or this call sees the end.
        std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    ~public_call() {
        t_innermost = outer_;
        t_caller.function.store(outer_ == nullptr ? nullptr : outer_->function_,
                                std::memory_order_release);
    }
    public_call(const public_call &) = delete;
    public_call &operator=(const public_call &) = delete;

    /// The calling thread's innermost call; nullptr outside of calls.
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

/// A wait of the calling thread that answers requests for its description.
class waiting {
public:
    waiting() { ++t_depth; }
    ~waiting();
    waiting(const waiting &) = delete;
    waiting &operator=(const waiting &) = delete;

    /// Whether a description of this thread's wait is requested.
    [[nodiscard]] bool is_requested() const { return t_requester.load(std::memory_order_relaxed); }
    /// Answers the request with `text` ("waiting for rank 1 ...") and the public call.
    void describe_to_requester(std::string_view text) noexcept;

    /// Called by the signal handler: stores a request. False if the interrupted thread does not
    /// wait.
    static bool request_description(thread_stack &requester);

private:
    constinit static thread_local int t_depth;
    constinit static thread_local std::atomic<thread_stack *> t_requester;
};

} // namespace diomp::stacks
