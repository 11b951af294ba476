// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "stacks/calls.h"

#include "base/process_barrier.h"
#include "stacks/waiting.h"

#include <chrono>
#include <mutex>
#include <thread>
#include <unistd.h>
#include <vector>

namespace diomp::stacks {
namespace {

struct thread_list {
    struct entry {
        pid_t thread;
        const caller *calls;
    };
    std::mutex mutex; ///< leaf lock
    std::vector<entry> entries;
    const thread_list *parent_list = nullptr; ///< list of the process that forked this one
};

/// Never destroyed: threads may end after static objects.
thread_list *&current_list() {
    static auto *current = new thread_list;
    return current;
}
thread_list &threads() { return *current_list(); }

/// Removes a thread from the list before its thread-local memory is freed.
struct listed_thread {
    explicit listed_thread(const caller &calls) : calls_(&calls) {
        std::lock_guard const guard(threads().mutex);
        threads().entries.push_back({::gettid(), calls_});
    }
    ~listed_thread() {
        std::lock_guard const guard(threads().mutex);
        std::erase_if(threads().entries, [this](const auto &each) { return each.calls == calls_; });
    }
    listed_thread(const listed_thread &) = delete;
    listed_thread &operator=(const listed_thread &) = delete;

private:
    const caller *calls_;
};

/// Delay where the kernel has no barrier: much longer than a store stays in a core's store buffer.
constexpr std::chrono::milliseconds stores_are_visible{10};

} // namespace

constinit thread_local caller public_call::t_caller;

void public_call::list_thread() {
    [[maybe_unused]] thread_local listed_thread const listed(t_caller);
    t_caller.is_listed = true;
}

void wait_for_visibility() {
    if (!process_barrier()) {
        std::this_thread::sleep_for(stores_are_visible);
    }
}

std::optional<call_elsewhere> find_call_elsewhere() {
    pid_t const own = ::gettid();
    std::lock_guard const guard(threads().mutex);
    for (auto const &[thread, calls] : threads().entries) {
        const char *const function = calls->function.load(std::memory_order_acquire);
        if (function != nullptr && thread != own) {
            return call_elsewhere{thread, function};
        }
    }
    return std::nullopt;
}

void leave_calls() { public_call::t_caller.function.store(nullptr, std::memory_order_release); }

void reset_after_fork() {
    // A thread that does not exist in this process may have locked the parent's list.
    auto *const own = new thread_list;
    own->parent_list = current_list();
    current_list() = own;
}

} // namespace diomp::stacks
