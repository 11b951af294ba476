// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "stacks/stacks.h"

#include "base/service_thread.h"
#include "stacks/internal/thread_stacks.h"
#include "stacks/symbols.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <poll.h>
#include <span>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace diomp::stacks {
namespace {

/// Limit of different stacks in the output; the threads of further stacks are counted.
constexpr std::size_t max_shown = 32;
/// Time for the launcher to end the job, which takes two seconds. After it this rank exits itself.
constexpr int end_timeout_ms = 4000;

std::span<const std::uintptr_t> frames_of(const thread_stack &stack) {
    return {stack.frames.data(), stack.num_frames};
}

bool are_alike(const thread_stack &a, const thread_stack &b) {
    return a.name == b.name && a.function == b.function && a.description() == b.description() &&
           std::ranges::equal(frames_of(a), frames_of(b));
}

/// "thread 17 (app), in ompx_barrier(group=world), waiting for rank 1".
std::string headline(std::span<const thread_stack *const> alike) {
    const thread_stack &first = *alike.front();
    std::string text = alike.size() == 1 ? "  thread" : fmt::format("  {} threads", alike.size());
    for (const thread_stack *const each : alike) {
        text += fmt::format("{} {}", each == alike.front() ? "" : ",", each->thread);
    }
    text += fmt::format(" ({})", first.name);
    if (std::string_view const what = first.description(); !what.empty()) {
        text += fmt::format(", in {}", what);
    } else if (first.function != nullptr) {
        text += fmt::format(", in {}", first.function);
    }
    return text + '\n';
}

void append_threads(std::string &text, std::vector<const thread_stack *> left) {
    symbols names;
    for (std::size_t num_shown = 0; !left.empty(); ++num_shown) {
        if (num_shown == max_shown) {
            text += fmt::format("  and {} threads with other stacks\n", left.size());
            return;
        }
        const thread_stack &first = *left.front();
        std::vector<const thread_stack *> alike;
        std::vector<const thread_stack *> others;
        for (const thread_stack *const each : left) {
            (are_alike(*each, first) ? alike : others).push_back(each);
        }
        text += headline(alike);
        std::size_t number = 0;
        for (std::uintptr_t const address : frames_of(first)) {
            text += fmt::format("    #{:<2} {}\n", number++, names.describe(address));
        }
        left = std::move(others);
    }
}

void write_all(std::string_view text) {
    while (!text.empty()) {
        ssize_t const written = ::write(STDERR_FILENO, text.data(), text.size());
        if (written < 0 && errno != EINTR) {
            return;
        }
        text.remove_prefix(written < 0 ? 0 : static_cast<std::size_t>(written));
    }
}

} // namespace

void print_stacks(const launch::job_info &job) noexcept {
    static std::mutex one_at_a_time;
    std::lock_guard const guard(one_at_a_time);
    all_stacks const found = collect_stacks();
    std::string text = fmt::format("diomp: stacks of rank {} on {} (pid {}):\n", job.rank.value(),
                                   job.host, ::getpid());
    append_threads(text, found.recorded);
    for (const thread_stack *const each : found.silent) {
        text += fmt::format("  thread {} ({}) does not respond\n", each->thread, each->name);
    }
    if (!found.had_signal) {
        text += "  no stacks of other threads: the program uses all real-time signals\n";
    }
    write_all(text);
}

void print_last_stacks(const launch::job_info &job) noexcept {
    static std::atomic<bool> is_done{false};
    if (!is_done.exchange(true)) {
        print_stacks(job);
    }
}

void give_up(launch::launcher &launcher, int code, std::string_view message, bool own) noexcept {
    if (launcher.give_up(code, message)) {
        pollfd end{launcher.watch_fd(), POLLIN, 0};
        while (::poll(&end, 1, end_timeout_ms) < 0 && errno == EINTR) {
        }
        return;
    }
    if (own) {
        print_last_stacks(launcher.info());
    }
    launcher.abort(code, message);
}

std::unique_ptr<stack_reporter> stack_reporter::start(launch::launcher &launcher) {
    if (launcher.stacks_fd() < 0) {
        return nullptr;
    }
    int const stop_fd = ::eventfd(0, EFD_CLOEXEC);
    if (stop_fd < 0) {
        return nullptr;
    }
    std::unique_ptr<stack_reporter> made(new stack_reporter(launcher, stop_fd));
    made->thread_ = start_service_thread("diomp-stacks", [self = made.get()] { self->serve(); });
    launcher.stacks_ready();
    return made;
}

stack_reporter::~stack_reporter() {
    ::eventfd_write(stop_fd_, 1);
    thread_.join();
    ::close(stop_fd_);
}

void stack_reporter::serve() {
    std::array<pollfd, 2> ready{pollfd{launcher_.stacks_fd(), POLLIN, 0},
                                pollfd{stop_fd_, POLLIN, 0}};
    do {
        while (::poll(ready.data(), ready.size(), -1) < 0) {
            if (errno != EINTR) {
                return;
            }
        }
    } while (ready[1].revents == 0 && reply());
}

bool stack_reporter::reply() {
    char request = 0;
    ssize_t const size = ::read(launcher_.stacks_fd(), &request, 1);
    if (size > 0) {
        print_stacks(launcher_.info());
    } else {
        print_last_stacks(launcher_.info());
    }
    launcher_.stacks_shown();
    return size > 0;
}

} // namespace diomp::stacks
