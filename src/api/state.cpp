// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "api/state.h"

#include "api/fortran.h"
#include "base/biased_mutex.h"
#include "base/log.h"
#include "base/output_file.h"
#include "base/per_thread.h"
#include "base/standard_descriptors.h"
#include "launch/launch.h"
#include "launch/nodes.h"
#include "memory/layout.h"
#include "stacks/calls.h"

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

fast_view g_fast;
std::atomic<runtime::runtime *> g_runtime{nullptr};
job_numbers g_job;

namespace {

using std::chrono::milliseconds;

/// finishing: a thread is in ompx_finalize; leaving: one is in exit() and waits for the other
/// ranks, calls go on meanwhile; left: it does not wait any more, calls of others do not return.
enum class phase { not_started, running, finishing, finished, leaving, left, forked };

struct process_state {
    std::mutex mutex; ///< start and finish; taken before anything else
    std::atomic<phase> now{phase::not_started};
    /// The runtime, also while calls do not find it. The thread that takes it from here ends it.
    std::atomic<runtime::runtime *> owned{nullptr};
    std::atomic<pid_t> leaver{0};            ///< the thread that is in exit()
    std::unique_ptr<conduit::window> window; ///< of a runtime that has ended
    runtime::runtime *abandoned = nullptr;   ///< never destroyed: threads are still in it
    std::atomic<error_policy> policy{error_policy::abort};
    std::string identity; ///< "rank 1 (hostname)"
    pid_t pid = 0;
    /// A file of statistics has been written: a process may have a table of the rank and one of its
    /// remote devices.
    std::atomic<bool> has_table{false};
};

/// Never destroyed: it is used by exit handlers.
process_state &state() {
    static auto *const only = new process_state;
    return *only;
}

struct last_error_tag {};
std::string &last_error() { return per_thread<std::string, last_error_tag>::get(); }

void print_statistics(runtime::runtime &running) {
    auto const cache = running.space().cache_counts();
    std::string const text = running.stats().table(
        fmt::format("diomp: statistics of rank {} of {} on {}", running.job().rank.value(),
                    running.job().size, running.job().host),
        {{"second-level pointers fetched", cache.fetched},
         {"second-level pointers found in the cache", cache.hits}});
    print_table(text, running.values().stats_file, running.job().rank.value());
}

void publish(runtime::runtime &running) {
    auto const &job = running.job();
    std::byte *const own = running.transport().direct_base(job.rank);
    for (std::size_t entry = 0; entry < fast_view::num_entries; ++entry) {
        g_fast.rank[entry] = ~static_cast<std::int32_t>(entry); // no rank that leads here
    }
    for (int rank = job.size; rank-- > 0;) {
        std::byte *const slot = running.transport().direct_base(world_rank{rank});
        if (slot != nullptr) {
            g_fast.distance[fast_view::entry_of(rank)] = slot - own;
            g_fast.rank[fast_view::entry_of(rank)] = rank;
        }
    }
    g_job = {job.rank.value(), job.size, job.local.value(), job.local_size};
    g_fast.own_base = reinterpret_cast<std::uintptr_t>(running.segment().base());
    g_fast.stream_threshold = running.transfers().stream_threshold();
    refresh_fast_view(running);
    publish_devices(running);
    state().owned.store(&running, std::memory_order_release);
    g_runtime.store(&running, std::memory_order_release);
}

/// Calls do not find the runtime from now on, once stacks::await_visibility() has returned.
void close_to_calls() {
    g_fast.extent.store(0, std::memory_order_relaxed);
    g_fast.fence_orders_only.store(false, std::memory_order_relaxed);
    g_fast.is_plain.store(false, std::memory_order_relaxed);
    forget_routes();
    g_runtime.store(nullptr, std::memory_order_release);
}

void open_to_calls(runtime::runtime &running) {
    refresh_fast_view(running);
    g_runtime.store(&running, std::memory_order_release);
}

/// A forked child shares the segments but none of the threads, and would sign off in its parent's
/// name.
void forget_in_child() {
    close_to_calls();
    stacks::forget_other_threads();
    state().owned.store(nullptr, std::memory_order_relaxed);
    state().leaver.store(0, std::memory_order_relaxed);
    state().now.store(phase::forked, std::memory_order_relaxed);
}

bool is_left_by_another() {
    return state().now.load(std::memory_order_acquire) == phase::left &&
           state().leaver.load(std::memory_order_relaxed) != ::gettid();
}

/// Before an error is reported: does not return to a thread whose process is being ended by another
/// one. While that one still waits for the other ranks, an error may be due to a rank that has left
/// already; the wait is over soon then.
void stay_if_left() {
    constexpr milliseconds limit{2000};
    auto const end = std::chrono::steady_clock::now() + limit;
    while (state().now.load(std::memory_order_acquire) == phase::leaving &&
           state().leaver.load(std::memory_order_relaxed) != ::gettid() &&
           std::chrono::steady_clock::now() < end) {
        std::this_thread::sleep_for(milliseconds(1));
    }
    if (is_left_by_another()) {
        stay_until_the_end();
    }
}

/// True when no other thread is in a call any more; those that wait have been told to give up.
bool wait_until_others_have_left() {
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
    // Another thread may be stuck inside stdio: do not wait for it on the way out.
    if (::ftrylockfile(stdout) == 0) {
        std::fflush(stdout);
        ::funlockfile(stdout);
    }
}

/// `failure`: why, OMPX_SUCCESS if the program wants it.
[[noreturn]] void end_job(int code, const std::string &message, int failure) {
    flush_output();
    runtime::runtime *const running = state().owned.load(std::memory_order_acquire);
    if (running != nullptr) {
        running->give_up(failure, code, message);
    }
    launch::end_of_process(code); // where a launcher of others' is left with half a start
    std::_Exit(code);
}

} // namespace

void stay_until_the_end() noexcept {
    stacks::leave_calls();
    for (;;) {
        ::syscall(SYS_ppoll, nullptr, 0, nullptr, nullptr, 0); // no point of cancellation
    }
}

void observe(runtime::runtime &running, const char *function, const account &counted,
             std::chrono::steady_clock::time_point begin, const void *site) {
    auto const end = std::chrono::steady_clock::now();
    if (running.stats().enabled()) {
        running.stats().record(function, counted.way, counted.nbytes, end - begin,
                               ompx_fortran_site != nullptr ? ompx_fortran_site : site);
    }
    if (running.tracer().enabled()) {
        running.tracer().slice(function, counted.way, counted.nbytes, begin, end);
    }
}

void print_table(const std::string &text, std::string path, int rank) {
    if (path.empty()) {
        std::fputs(text.c_str(), stderr);
        return;
    }
    if (auto const at = path.find("%r"); at != std::string::npos) {
        path.replace(at, 2, std::to_string(rank));
    }
    bool const is_first = !state().has_table.exchange(true);
    auto file = is_first ? output_file::create("statistics", path)
                         : output_file::append("statistics", path);
    status written = file ? status() : status(file.take_failure());
    if (written) {
        file.value().write(text);
        written = file.value().close();
    }
    if (!written) {
        log(log_level::warn, "{}", written.failure().message());
    }
}

void refresh_fast_view(runtime::runtime &running) {
    bool const plain = !running.observes() && running.values().check == check_level::none;
    g_fast.is_plain.store(plain, std::memory_order_relaxed);
    g_fast.extent.store(plain ? running.segment().symmetric_extent() : 0,
                        std::memory_order_relaxed);
    g_fast.fence_orders_only.store(plain && running.transfers().all_direct(),
                                   std::memory_order_relaxed);
}

status start_runtime() {
    std::lock_guard const guard(state().mutex);
    switch (state().now.load()) {
    case phase::running:
    case phase::leaving:
        return {};
    case phase::finishing:
    case phase::finished:
    case phase::left:
    case phase::forked:
        return state_error();
    case phase::not_started:
        break;
    }
    biased_mutex::prepare(); // before a library starts a thread
    fill_standard_descriptors();
    auto launcher = launch::connect();
    DIOMP_TRY(launcher);
    auto const &job = launcher.value()->info();
    state().identity = fmt::format("rank {} ({})", job.rank.value(), job.host);
    std::vector<std::string> unknown;
    auto values = read_settings(unknown);
    DIOMP_TRY(values);
    set_log(values.value().log,
            job.size > 1 ? fmt::format("[{}@{}] ", job.rank.value(), job.host) : "");
    if (job.rank == world_rank{0}) {
        for (std::string const &name : unknown) {
            log(log_level::warn, "{} is no setting of DiOMP; 'diomp-info --settings' lists them",
                name);
        }
    }
    state().policy.store(values.value().errors);
    auto joined = launcher.take();
    if (values.value().node_size > 0) {
        joined = launch::split_nodes(std::move(joined), values.value().node_size);
    }
    auto started = runtime::runtime::start(values.value(), std::move(joined));
    DIOMP_TRY(started);
    state().pid = ::getpid();
    ::pthread_atfork(nullptr, nullptr, forget_in_child);
    // Destroyed by finish_runtime.
    publish(*started.take().release());
    state().now.store(phase::running);
    return {};
}

namespace {

/// Statistics and trace, when the threads of the runtime have stopped.
void report(runtime::runtime &running) {
    if (running.stats().enabled()) {
        print_statistics(running);
    }
    if (running.tracer().enabled()) {
        hand_over_remote_trace(running);
        if (status const written = running.tracer().write(running.job()); !written) {
            log(log_level::warn, "{}", written.failure().message());
        }
    }
}

/// Destroys the runtime, all but the window, which calls in line may still copy into. The thread
/// has taken it from process_state::owned.
void destroy(runtime::runtime *running) {
    state().window = running->keep_window();
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
    stacks::await_visibility();
    auto const reopen = [&] {
        state().now.store(phase::running);
        open_to_calls(*running);
    };
    if (auto const other = stacks::find_call_elsewhere()) {
        reopen();
        return in_call_elsewhere(*other);
    }
    // Memory of devices that OpenMP frees from now on stays as it is: the window outlives it.
    close_devices();
    status finished = running->meet_at_end();
    if (finished) {
        finished = running->close();
    }
    if (!finished) {
        reopen();
        return finished;
    }
    report(*running);
    if (state().owned.exchange(nullptr) == nullptr) {
        stay_until_the_end(); // exit() of another thread has taken it
    }
    state().now.store(phase::finished);
    stacks::await_visibility();
    while (stacks::find_call_elsewhere()) {
        std::this_thread::sleep_for(milliseconds(1)); // in ompx_abort, which ends the process
    }
    local_rank const own = running->job().local;
    destroy(running);
    // The program's memory goes back to the system; what lies before it other ranks still look at.
    conduit::window const &kept = *state().window;
    kept.release_pages(own, memory::internal_bytes, kept.usable_bytes() - memory::internal_bytes);
    return {};
}

void start_with_program() {
    if (status const started = start_runtime(); !started) {
        state().policy.store(error_policy::abort);
        fail("ompx_init", "", started.failure());
    }
}

namespace {

/// No other thread gets a result of a call from now on. True if none is in one.
bool leave(runtime::runtime &running) {
    state().now.store(phase::left, std::memory_order_release);
    close_to_calls();
    stacks::await_visibility();
    running.engine().fail_waits("the process is ending");
    return wait_until_others_have_left();
}

/// exit() in a signal handler, say, inside a call of the same thread, which holds what the end
/// would wait for.
bool is_inside_call() { return stacks::public_call::innermost() != nullptr; }

} // namespace

void finish_with_program() {
    if (state().owned.load() == nullptr || state().pid != ::getpid()) {
        return;
    }
    if (is_inside_call()) {
        log(log_level::error,
            "exit() was called inside {}: the rank ends without waiting for the others",
            stacks::public_call::innermost()->function());
        abandon_with_program();
        return;
    }
    std::lock_guard const guard(state().mutex);
    runtime::runtime *const running = state().owned.load(std::memory_order_acquire);
    if (running == nullptr) {
        return; // another thread was in ompx_finalize
    }
    state().leaver.store(::gettid());
    state().now.store(phase::leaving, std::memory_order_release);
    close_devices();
    status finished = running->meet_at_end();
    bool is_alone = false;
    if (finished) {
        is_alone = leave(*running);
        finished = running->close();
    }
    if (!finished) {
        fail("exit", "0", finished.failure());
        abandon_with_program(); // the errors' caller wants them back, and there is none
        return;
    }
    report(*running);
    is_alone = is_alone || !stacks::find_call_elsewhere();
    if (state().owned.exchange(nullptr) == nullptr) {
        return;
    }
    if (is_alone) {
        destroy(running);
    } else {
        state().abandoned = running;
        running->freeze();
    }
}

void abandon_with_program() {
    if (state().pid != ::getpid()) {
        return;
    }
    // Not under the mutex: another thread may be in ompx_finalize, and wait there for ever.
    runtime::runtime *const running = state().owned.exchange(nullptr);
    if (running == nullptr) {
        return;
    }
    state().abandoned = running;
    state().leaver.store(::gettid());
    running->transport().report_failures_to({}); // others may end before this process does
    leave(*running);
    running->freeze();
}

error state_error() {
    switch (state().now.load()) {
    case phase::finishing:
        return {OMPX_ERR_STATE, "called while another thread is in ompx_finalize",
                "call ompx_finalize when all other threads have made their last call"};
    case phase::finished:
        return {OMPX_ERR_STATE, "called after ompx_finalize", "move the call before ompx_finalize"};
    case phase::left:
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

std::string sentence(const char *function, const std::string &arguments, const error &failure) {
    std::string const who = state().identity.empty() ? "" : state().identity + ": ";
    std::string text = fmt::format("{}{}({}): {}", who, function, arguments, failure.message());
    if (!failure.remedy().empty()) {
        text += fmt::format(" [remedy: {}]", failure.remedy());
    }
    return text;
}

} // namespace

void fail_later(const char *function, const error &failure) noexcept {
    // Of a thread of the runtime's, which the end waits for: so it is not held here.
    if (state().now.load(std::memory_order_acquire) == phase::left) {
        return;
    }
    std::string const text = sentence(function, "...", failure);
    write_log(log_level::error, text);
    end_job(1, text, failure.code());
}

int fail(const char *function, const std::string &arguments, const error &failure) noexcept {
    stay_if_left();
    std::string const text = sentence(function, arguments, failure);
    last_error() = text;
    if (state().policy.load() == error_policy::give_back) {
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
    diomp::api::use const here("ompx_abort"); // the runtime does not end meanwhile
    diomp::api::end_job(code, fmt::format("ompx_abort({})", code), OMPX_SUCCESS);
}

const char *ompx_last_error(void) noexcept { return diomp::api::last_error().c_str(); }

} // extern "C"
