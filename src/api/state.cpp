// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "api/internal/state.h"

#include "api/internal/error_mode.h"
#include "api/internal/last_error.h"
#include "base/biased_mutex.h"
#include "base/log.h"
#include "base/standard_descriptors.h"
#include "diomp/binding.hpp"
#include "diomp/process.h"
#include "launch/launch.h"
#include "launch/nodes.h"
#include "memory/layout.h"
#include "memory/memory.h"
#include "memory/static_pages.h"
#include "messaging/engine.h"
#include "rma/rma.h"
#include "stacks/calls.h"
#include "transport/conduit.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace diomp::api {

std::atomic<runtime::runtime *> g_runtime{nullptr};
job_numbers g_job;

namespace {

using std::chrono::milliseconds;

/// finishing: a thread is in ompx_finalize. exiting: a thread is in exit() and waits for the other
/// ranks; other threads' calls still work. exited: that wait is over; other threads' calls do not
/// return.
enum class phase { not_started, running, finishing, finished, exiting, exited, forked };

struct process_state {
    std::mutex mutex; ///< start and finish; first in the lock order
    std::atomic<phase> now{phase::not_started};
    /// The runtime, also while g_runtime is null. The thread that exchanges it for null ends it.
    std::atomic<runtime::runtime *> owned{nullptr};
    std::atomic<pid_t> exiting_thread{0};    ///< id of the thread in exit()
    std::unique_ptr<transport::arena> arena; ///< of a runtime that has ended
    runtime::runtime *abandoned = nullptr;   ///< never destroyed: threads are still in it
    std::string identity;                    ///< "rank 1 (hostname)"
    pid_t pid = 0;
};

/// Never destroyed: exit handlers use it.
process_state &state() {
    static auto *const only = new process_state;
    return *only;
}

void publish(runtime::runtime &running, offload::remote_memory *remote) {
    auto const &job = running.job();
    g_job = {job.rank.value(), job.size, job.local.value(), job.local_size};
    fill_fast_view(running);
    publish_devices(running, remote);
    state().owned.store(&running, std::memory_order_release);
    g_runtime.store(&running, std::memory_order_release);
}

/// Hides the runtime from new calls; effective once stacks::wait_for_visibility() has returned.
void close_to_calls() {
    close_fast_view();
    invalidate_translations();
    g_runtime.store(nullptr, std::memory_order_release);
}

void open_to_calls(runtime::runtime &running) {
    refresh_fast_view(running);
    g_runtime.store(&running, std::memory_order_release);
}

/// A forked child has the segments but none of the threads, and would sign off as its parent.
void forget_in_child() {
    close_to_calls();
    stacks::reset_after_fork();
    state().owned.store(nullptr, std::memory_order_relaxed);
    state().exiting_thread.store(0, std::memory_order_relaxed);
    state().now.store(phase::forked, std::memory_order_relaxed);
}

bool is_exited_by_other_thread() {
    return state().now.load(std::memory_order_acquire) == phase::exited &&
           state().exiting_thread.load(std::memory_order_relaxed) != ::gettid();
}

/// Call before an error is reported: blocks forever if another thread ends the process. While that
/// thread still waits for the other ranks, the error may come from a rank that has already ended,
/// so this function first waits up to 2 s for the end of that wait.
void block_if_exiting() {
    constexpr milliseconds limit{2000};
    auto const end = std::chrono::steady_clock::now() + limit;
    while (state().now.load(std::memory_order_acquire) == phase::exiting &&
           state().exiting_thread.load(std::memory_order_relaxed) != ::gettid() &&
           std::chrono::steady_clock::now() < end) {
        std::this_thread::sleep_for(milliseconds(1));
    }
    if (is_exited_by_other_thread()) {
        block_until_process_ends();
    }
}

/// Waits up to 100 ms for the calls of other threads, whose waits have been failed, to return. True
/// if no other thread is in a call.
bool wait_for_calls_elsewhere() {
    constexpr milliseconds limit{100};
    auto const end = std::chrono::steady_clock::now() + limit;
    while (stacks::find_call_elsewhere()) {
        if (std::chrono::steady_clock::now() > end) {
            return false;
        }
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    return true;
}

void flush_output() {
    // Another thread may block inside stdio: do not wait for it.
    if (::ftrylockfile(stdout) == 0) {
        std::fflush(stdout);
        ::funlockfile(stdout);
    }
}

/// `failure`: the status that ends the job; OMPX_SUCCESS for ompx_abort().
[[noreturn]] void end_job(int code, const std::string &message, int failure) {
    flush_output();
    runtime::runtime *const running = state().owned.load(std::memory_order_acquire);
    if (running != nullptr) {
        running->connection().give_up(failure, code, message);
    }
    launch::notify_process_exit(code); // some launchers of others need it if start-up has failed
    std::_Exit(code);
}

} // namespace

void block_until_process_ends() noexcept {
    stacks::leave_calls();
    for (;;) {
        ::syscall(SYS_ppoll, nullptr, 0, nullptr, nullptr,
                  0); // a direct system call is not a cancellation point
    }
}

status start_runtime(std::unique_ptr<launch::launcher> given) {
    std::lock_guard const guard(state().mutex);
    switch (state().now.load()) {
    case phase::running:
    case phase::exiting:
        return {};
    case phase::finishing:
    case phase::finished:
    case phase::exited:
    case phase::forked:
        return state_error();
    case phase::not_started:
        break;
    }
    biased_mutex::prepare(); // before a library starts a thread
    fill_standard_descriptors();
    auto launcher = given != nullptr ? result<std::unique_ptr<launch::launcher>>(std::move(given))
                                     : launch::connect();
    DIOMP_TRY(launcher);
    auto const &job = launcher.value()->info();
    state().identity = fmt::format("rank {} ({})", job.rank.value(), job.host);
    std::vector<std::string> unknown;
    auto values = read_settings(unknown);
    DIOMP_TRY(values);
    set_log(values.value().runtime.log,
            job.size > 1 ? fmt::format("[{}@{}] ", job.rank.value(), job.host) : "");
    if (job.rank == world_rank{0}) {
        for (std::string const &name : unknown) {
            log(log_level::warn, "{} is not a setting of DiOMP; 'diomp-info --settings' lists them",
                name);
        }
    }
    set_library_errors(values.value().runtime.errors);
    auto joined = launcher.take();
    if (values.value().transport.node_size > 0) {
        joined = launch::split_nodes(std::move(joined), values.value().transport.node_size);
    }
    auto started = runtime::runtime::start(values.value(), std::move(joined));
    DIOMP_TRY(started);
    state().pid = ::getpid();
    ::pthread_atfork(nullptr, nullptr, forget_in_child);
    offload::remote_memory *remote = nullptr;
    if (runtime::job_connection &opened = started.value()->connection();
        opened.has_remote_devices()) {
        auto joined_devices = join_remote_devices(opened.launcher());
        DIOMP_TRY(joined_devices);
        remote = joined_devices.value();
    }
    // finish_runtime() destroys it.
    publish(*started.take().release(), remote);
    state().now.store(phase::running);
    return {};
}

namespace {

/// Destroys the runtime but for the arena, which inline puts may still write. The caller has taken
/// the runtime from process_state::owned.
void destroy(runtime::runtime *running) {
    state().arena = running->connection().keep_arena();
    delete running;
}

error in_call_elsewhere(const stacks::call_elsewhere &call) {
    return {OMPX_ERR_STATE,
            fmt::format("thread {} is in {}: the runtime that it uses cannot end", call.thread,
                        call.function),
            "wait until all other threads have made their last call, then call ompx_finalize"};
}

} // namespace

status finish_runtime() {
    std::lock_guard const guard(state().mutex);
    runtime::runtime *const running = state().owned.load(std::memory_order_acquire);
    if (running == nullptr) {
        return state_error();
    }
    state().now.store(phase::finishing);
    close_to_calls();
    stacks::wait_for_visibility();
    auto const reopen = [&] {
        state().now.store(phase::running);
        open_to_calls(*running);
    };
    if (auto const other = stacks::find_call_elsewhere()) {
        reopen();
        return in_call_elsewhere(*other);
    }
    // Device memory that OpenMP frees from now on is not released: the arena outlives it.
    close_devices();
    status finished = running->synchronize_at_end();
    if (finished) {
        finished = running->connection().close();
    }
    if (!finished) {
        reopen();
        return finished;
    }
    leave_remote_devices();
    report_statistics(*running);
    if (state().owned.exchange(nullptr) == nullptr) {
        block_until_process_ends(); // exit() of another thread has taken it
    }
    state().now.store(phase::finished);
    stacks::wait_for_visibility();
    while (stacks::find_call_elsewhere()) {
        std::this_thread::sleep_for(milliseconds(1)); // in ompx_abort, which ends the process
    }
    local_rank const own = running->job().local;
    destroy(running);
    // Returns the program's pages to the system, but not its static data, nor the runtime's part of
    // the segment, which other ranks still read.
    transport::arena const &kept = *state().arena;
    memory::release_other_pages(kept, own, memory::internal_bytes,
                                kept.usable_bytes() - memory::internal_bytes);
    return {};
}

void start_at_load() {
    if (status const started = start_runtime(); !started) {
        set_library_errors(error_policy::abort);
        fail("ompx_init", "", started.failure());
    }
}

namespace {

/// Calls of other threads do not return from now on. True if no other thread is in a call.
bool stop_calls(runtime::runtime &running) {
    state().now.store(phase::exited, std::memory_order_release);
    close_to_calls();
    stacks::wait_for_visibility();
    running.connection().engine().fail_waits("the process is ending");
    return wait_for_calls_elsewhere();
}

/// Whether exit() was called inside a call of this thread, for example by a signal handler.
/// Shutdown could then wait for a lock that the call holds.
bool is_inside_call() { return stacks::public_call::innermost() != nullptr; }

} // namespace

void finish_at_exit() {
    if (state().owned.load() == nullptr || state().pid != ::getpid()) {
        return;
    }
    if (is_inside_call()) {
        log(log_level::error,
            "exit() was called inside {}: the rank ends without waiting for the others",
            stacks::public_call::innermost()->function());
        abandon_at_exit();
        return;
    }
    std::lock_guard const guard(state().mutex);
    runtime::runtime *const running = state().owned.load(std::memory_order_acquire);
    if (running == nullptr) {
        return; // another thread was in ompx_finalize
    }
    state().exiting_thread.store(::gettid());
    state().now.store(phase::exiting, std::memory_order_release);
    close_devices();
    status finished = running->synchronize_at_end();
    bool is_alone = false;
    if (finished) {
        is_alone = stop_calls(*running);
        finished = running->connection().close();
    }
    if (!finished) {
        fail("exit", "0", finished.failure());
        // DIOMP_ERRORS=return, but exit() has no caller that could handle the error.
        write_log(log_level::error, ::ompx_last_error());
        abandon_at_exit();
        return;
    }
    leave_remote_devices();
    report_statistics(*running);
    is_alone = is_alone || !stacks::find_call_elsewhere();
    if (state().owned.exchange(nullptr) == nullptr) {
        return;
    }
    if (is_alone) {
        destroy(running);
    } else {
        state().abandoned = running;
        running->connection().freeze();
    }
}

void abandon_at_exit() {
    if (state().pid != ::getpid()) {
        return;
    }
    // Without the mutex: another thread may hold it and wait forever in ompx_finalize.
    runtime::runtime *const running = state().owned.exchange(nullptr);
    if (running == nullptr) {
        return;
    }
    state().abandoned = running;
    state().exiting_thread.store(::gettid());
    if (auto *const peers = running->connection().transport().peers(); peers != nullptr) {
        peers->report_failures_to({}); // other ranks may end before this process does
    }
    stop_calls(*running);
    leave_remote_devices();
    running->connection().freeze();
}

error state_error() {
    switch (state().now.load()) {
    case phase::finishing:
        return {OMPX_ERR_STATE, "called while another thread is in ompx_finalize",
                "call ompx_finalize when all other threads have made their last call"};
    case phase::finished:
        return {OMPX_ERR_STATE, "called after ompx_finalize",
                "make the call before ompx_finalize, and call ompx_finalize once"};
    case phase::exited:
        return {OMPX_ERR_STATE, "called after exit() has ended the runtime",
                "make the call before the program's exit handlers are over"};
    case phase::forked:
        return {OMPX_ERR_STATE, "called in a child process that a rank forked",
                "call it in the rank itself"};
    default:
        return {OMPX_ERR_STATE, "the runtime is not started", "call ompx_init first"};
    }
}

namespace {

std::string format_error(const char *function, const std::string &arguments, const error &failure) {
    std::string const prefix = state().identity.empty() ? "" : state().identity + ": ";
    std::string text = fmt::format("{}{}({}): {}", prefix, function, arguments, failure.message());
    if (!failure.remedy().empty()) {
        text += fmt::format(" [remedy: {}]", failure.remedy());
    }
    return text;
}

} // namespace

void fail_later(const char *function, const error &failure) noexcept {
    // Returns, since this is a thread of the runtime that shutdown joins.
    if (state().now.load(std::memory_order_acquire) == phase::exited) {
        return;
    }
    std::string const text = format_error(function, "...", failure);
    write_log(log_level::error, text);
    end_job(1, text, failure.code());
}

int fail(const char *function, const std::string &arguments, const error &failure) noexcept {
    block_if_exiting();
    std::string const text = format_error(function, arguments, failure);
    record_error(function, arguments, failure, text);
    if (errors_in_effect() == error_policy::return_status) {
        runtime::runtime *const running = state().owned.load(std::memory_order_acquire);
        if (failure.code() == OMPX_ERR_PEER && running != nullptr) {
            running->connection().note_peer_error();
        }
        return failure.code();
    }
    write_log(log_level::error, text);
    end_job(1, text, failure.code());
}

} // namespace diomp::api

extern "C" {

int ompx_init(void) noexcept {
    if (diomp::status const started = diomp::api::start_runtime(); !started) {
        return diomp::api::fail("ompx_init", "", started.failure());
    }
    return OMPX_SUCCESS;
}

int ompx_finalize(void) noexcept {
    if (diomp::status const finished = diomp::api::finish_runtime(); !finished) {
        return diomp::api::fail("ompx_finalize", "", finished.failure());
    }
    return OMPX_SUCCESS;
}

void ompx_abort(int code) noexcept {
    diomp::api::runtime_access const here("ompx_abort"); // keeps the runtime from ending meanwhile
    diomp::api::end_job(code, fmt::format("ompx_abort({})", code), OMPX_SUCCESS);
}

} // extern "C"
