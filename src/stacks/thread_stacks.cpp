// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "stacks/internal/thread_stacks.h"

#include "stacks/internal/unwind.h"
#include "stacks/waiting.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <fstream>
#include <memory>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

namespace diomp::stacks {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds reply_timeout{300};
constexpr milliseconds description_timeout{200};
constexpr milliseconds poll_interval{1};

/// The memory that handlers may write to. Set before the signal is sent, and never freed.
std::atomic<thread_stack *> g_first{nullptr};
std::atomic<std::size_t> g_num{0};

struct thread_facts {
    pid_t thread = 0;
    std::string name;
    std::uint64_t blocked = 0; ///< signals, bit n - 1
};

std::string trim_line(std::string line) {
    while (!line.empty() && (line.back() == '\n' || line.back() == ' ')) {
        line.pop_back();
    }
    return line;
}

thread_facts read_facts(pid_t thread) {
    static constexpr std::string_view name_key = "Name:\t";
    static constexpr std::string_view blocked_key = "SigBlk:\t";
    thread_facts facts{thread, "", ~std::uint64_t{0}};
    std::ifstream status("/proc/self/task/" + std::to_string(thread) + "/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with(name_key)) {
            facts.name = trim_line(line.substr(name_key.size()));
        } else if (line.starts_with(blocked_key)) {
            std::from_chars(line.data() + blocked_key.size(), line.data() + line.size(),
                            facts.blocked, 16);
        }
    }
    return facts;
}

/// All threads except the runtime's own, which block all signals.
std::vector<thread_facts> list_threads() {
    std::vector<thread_facts> all;
    std::unique_ptr<DIR, int (*)(DIR *)> const folder(::opendir("/proc/self/task"), ::closedir);
    if (!folder) {
        return all;
    }
    while (const dirent *const entry = ::readdir(folder.get())) {
        pid_t thread = 0;
        const char *const end = entry->d_name + std::strlen(entry->d_name);
        if (std::from_chars(entry->d_name, end, thread).ptr != end || thread <= 0) {
            continue;
        }
        thread_facts facts = read_facts(thread);
        if (!facts.name.starts_with("diomp-")) {
            all.push_back(std::move(facts));
        }
    }
    std::ranges::sort(all, {}, &thread_facts::thread);
    return all;
}

bool blocks(const thread_facts &facts, int signal) {
    return (facts.blocked >> (signal - 1) & 1) != 0;
}

// Async-signal-safe: no allocation, no lock, no errno left behind.
void on_signal(int /*signal*/, siginfo_t *info, void *context) {
    int const before = errno;
    auto *const to = static_cast<thread_stack *>(info->si_value.sival_ptr);
    thread_stack *const first = g_first.load(std::memory_order_acquire);
    bool const is_ours = info->si_code == SI_QUEUE && info->si_pid == ::getpid() && to >= first &&
                         to < first + g_num.load(std::memory_order_acquire);
    if (is_ours && !to->is_recorded.load(std::memory_order_relaxed)) {
        to->num_frames = unwind(to->frames, context);
        const public_call *const call = public_call::innermost();
        to->function = call != nullptr ? call->function() : nullptr;
        to->waits = waiting::request_description(*to);
        to->is_recorded.store(true, std::memory_order_release);
    }
    errno = before;
}

/// Unused, or used by an earlier call.
bool is_free(int signal) {
    struct sigaction now{};
    if (::sigaction(signal, nullptr, &now) != 0) {
        return false;
    }
    return (now.sa_flags & SA_SIGINFO) == 0 ? now.sa_handler == SIG_DFL
                                            : now.sa_sigaction == on_signal;
}

/// Installs on_signal() for an unused signal and returns the signal; 0 if all are in use. The
/// handler stays: the signal may reach a thread late, and would end the process without it.
int install_handler(const std::vector<thread_facts> &threads) {
    auto const num_blocking = [&](int signal) {
        return std::ranges::count_if(threads,
                                     [&](const auto &each) { return blocks(each, signal); });
    };
    int best = 0;
    for (int signal = SIGRTMAX - 1; signal > SIGRTMIN; --signal) {
        if (is_free(signal) && (best == 0 || num_blocking(signal) < num_blocking(best))) {
            best = signal;
        }
    }
    struct sigaction action{};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    return best != 0 && ::sigaction(best, &action, nullptr) == 0 ? best : 0;
}

bool send_signal(pid_t thread, int signal, thread_stack &to) {
    siginfo_t info{};
    info.si_signo = signal;
    info.si_code = SI_QUEUE;
    info.si_pid = ::getpid();
    info.si_uid = ::getuid();
    info.si_value.sival_ptr = &to;
    return ::syscall(SYS_rt_tgsigqueueinfo, ::getpid(), thread, signal, &info) == 0;
}

template <typename Condition>
void wait_for(milliseconds limit, Condition is_over) {
    auto const end = std::chrono::steady_clock::now() + limit;
    while (!is_over() && std::chrono::steady_clock::now() < end) {
        std::this_thread::sleep_for(poll_interval);
    }
}

} // namespace

void thread_stack::describe_wait(std::string_view what) {
    text_size = what.copy(text.data(), text.size());
    is_described.store(true, std::memory_order_release);
}

all_stacks collect_stacks() {
    std::vector<thread_facts> const threads = list_threads();
    auto *const stacks = new thread_stack[threads.size()];
    g_num.store(0, std::memory_order_release); // no handler takes two arrays for one
    g_first.store(stacks, std::memory_order_release);
    g_num.store(threads.size(), std::memory_order_release);
    int const signal = install_handler(threads);
    all_stacks found;
    found.had_signal = signal != 0;
    std::vector<const thread_stack *> signalled;
    for (std::size_t i = 0; i < threads.size(); ++i) {
        stacks[i].thread = threads[i].thread;
        stacks[i].name = threads[i].name;
        if (threads[i].thread == ::gettid()) {
            stacks[i].num_frames = unwind(stacks[i].frames, nullptr);
            stacks[i].is_recorded.store(true, std::memory_order_release);
            signalled.push_back(&stacks[i]);
        } else if (signal != 0 && !blocks(threads[i], signal) &&
                   send_signal(threads[i].thread, signal, stacks[i])) {
            signalled.push_back(&stacks[i]);
        }
    }
    auto const is_recorded = [](const thread_stack *each) {
        return each->is_recorded.load(std::memory_order_acquire);
    };
    wait_for(reply_timeout, [&] { return std::ranges::all_of(signalled, is_recorded); });
    for (const thread_stack *const each : signalled) {
        (is_recorded(each) ? found.recorded : found.silent).push_back(each);
    }
    wait_for(description_timeout, [&] {
        return std::ranges::all_of(found.recorded, [](const thread_stack *each) {
            return !each->waits || each->is_described.load(std::memory_order_acquire);
        });
    });
    return found;
}

} // namespace diomp::stacks
