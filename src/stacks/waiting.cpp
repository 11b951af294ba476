// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "stacks/waiting.h"

#include "stacks/internal/thread_stacks.h"

#include <fmt/format.h>

namespace diomp::stacks {

constinit thread_local const public_call *public_call::t_innermost = nullptr;
constinit thread_local int waiting::t_depth = 0;
constinit thread_local std::atomic<thread_stack *> waiting::t_requester{nullptr};

waiting::~waiting() {
    if (--t_depth == 0) {
        t_requester.store(nullptr, std::memory_order_relaxed);
    }
}

bool waiting::request_description(thread_stack &requester) {
    if (t_depth == 0) {
        return false;
    }
    t_requester.store(&requester, std::memory_order_relaxed);
    return true;
}

void waiting::describe_to_requester(std::string_view text) noexcept {
    thread_stack *const requester = t_requester.exchange(nullptr, std::memory_order_relaxed);
    if (requester == nullptr) {
        return;
    }
    const public_call *const call = public_call::innermost();
    requester->describe_wait(
        call == nullptr ? std::string(text)
                        : fmt::format("{}({}), {}", call->function(), call->arguments(), text));
}

} // namespace diomp::stacks
