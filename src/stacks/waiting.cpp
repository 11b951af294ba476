// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "stacks/waiting.h"

#include "stacks/thread_stacks.h"

#include <fmt/format.h>

namespace diomp::stacks {

constinit thread_local const public_call *public_call::t_innermost = nullptr;
constinit thread_local int waiting::t_depth = 0;
constinit thread_local std::atomic<thread_stack *> waiting::t_asker{nullptr};

waiting::~waiting() {
    if (--t_depth == 0) {
        t_asker.store(nullptr, std::memory_order_relaxed);
    }
}

bool waiting::ask(thread_stack &asker) {
    if (t_depth == 0) {
        return false;
    }
    t_asker.store(&asker, std::memory_order_relaxed);
    return true;
}

void waiting::answer(std::string_view text) noexcept {
    thread_stack *const asker = t_asker.exchange(nullptr, std::memory_order_relaxed);
    if (asker == nullptr) {
        return;
    }
    const public_call *const call = public_call::innermost();
    asker->describe_wait(
        call == nullptr ? std::string(text)
                        : fmt::format("{}({}), {}", call->function(), call->arguments(), text));
}

} // namespace diomp::stacks
