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

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <pthread.h>
#include <unistd.h>
#include <vector>

namespace diomp::api {

fast_view g_fast;
std::atomic<runtime::runtime *> g_runtime{nullptr};

namespace {

enum class phase { not_started, running, finished, forked };

struct process_state {
    std::mutex mutex; ///< start and finish; taken before anything else
    std::atomic<phase> now{phase::not_started};
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

thread_local std::string t_last_error;

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
    g_fast.own_base = reinterpret_cast<std::uintptr_t>(running.segment().base());
    g_fast.stream_threshold = running.transfers().stream_threshold();
    refresh_fast_view(running);
    publish_devices(running);
    g_runtime.store(&running, std::memory_order_release);
}

/// A forked child shares the segments but none of the threads, and would sign off in its parent's
/// name.
void forget_in_child() {
    g_runtime.store(nullptr, std::memory_order_relaxed);
    g_fast.extent.store(0, std::memory_order_relaxed);
    g_fast.fence_orders_only.store(false, std::memory_order_relaxed);
    g_fast.is_plain.store(false, std::memory_order_relaxed);
    forget_routes();
    state().now.store(phase::forked, std::memory_order_relaxed);
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
    if (runtime::runtime *running = g_runtime.load(std::memory_order_acquire); running != nullptr) {
        running->give_up(failure, code, message);
    }
    launch::end_of_process(code); // where a launcher of others' is left with half a start
    std::_Exit(code);
}

} // namespace

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
        return {};
    case phase::finished:
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

status finish_runtime() {
    std::lock_guard const guard(state().mutex);
    runtime::runtime *running = g_runtime.load(std::memory_order_acquire);
    if (running == nullptr) {
        return state_error();
    }
    // Memory of devices that OpenMP frees from now on stays as it is: the window outlives it.
    close_devices();
    if (status finished = running->finish(); !finished) {
        return finished;
    }
    if (running->stats().enabled()) {
        print_statistics(*running);
    }
    if (running->tracer().enabled()) {
        hand_over_remote_trace(*running);
        if (status const written = running->tracer().write(running->job()); !written) {
            log(log_level::warn, "{}", written.failure().message());
        }
    }
    g_fast.extent.store(0, std::memory_order_relaxed);
    g_fast.fence_orders_only.store(false, std::memory_order_relaxed);
    g_fast.is_plain.store(false, std::memory_order_relaxed);
    forget_routes();
    g_runtime.store(nullptr, std::memory_order_release);
    state().now.store(phase::finished);
    delete running;
    return {};
}

void start_with_program() {
    if (status const started = start_runtime(); !started) {
        state().policy.store(error_policy::abort);
        fail("ompx_init", "", started.failure());
    }
}

void finish_with_program() {
    if (g_runtime.load() == nullptr || state().pid != ::getpid()) {
        return;
    }
    if (status const finished = finish_runtime(); !finished) {
        fail("exit", "0", finished.failure());
    }
}

error state_error() {
    switch (state().now.load()) {
    case phase::finished:
        return {OMPX_ERR_STATE, "called after ompx_finalize", "move the call before ompx_finalize"};
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
    std::string const text = sentence(function, "...", failure);
    write_log(log_level::error, text);
    end_job(1, text, failure.code());
}

int fail(const char *function, const std::string &arguments, const error &failure) noexcept {
    std::string const text = sentence(function, arguments, failure);
    t_last_error = text;
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
    diomp::api::end_job(code, fmt::format("ompx_abort({})", code), OMPX_SUCCESS);
}

const char *ompx_last_error(void) noexcept { return diomp::api::t_last_error.c_str(); }

} // extern "C"
