// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The only globals above base: the runtime, and what the inline path of put and get needs of it.
// Every C function goes through call() or query(), which check the state and turn errors into
// status codes and sentences.
#pragma once

#include "runtime/runtime.h"
#include "stacks/waiting.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace diomp::api {

/// For transfers on symmetric memory of directly mapped ranks. `extent` is 0 whenever anything else
/// has to happen (no runtime, statistics, checks); then every transfer takes the full path.
///
/// A put after a fence starts with an empty pipeline, so what counts is the longest chain of loads:
/// one here, from the rank to the distance of its segment. A pointer to a table would make it two.
/// Mapped ranks share the table by the last bits of their numbers: ranks of a node are neighbours
/// as a rule, so they have an entry each also in the middle of a large world. All others, remote
/// ranks and numbers that are no ranks, find an entry that is not theirs.
struct alignas(64) fast_view {
    static constexpr std::size_t num_entries = 256;
    [[nodiscard]] static std::size_t entry_of(int rank) {
        return static_cast<std::uint8_t>(rank); // zero extension, no mask to load
    }

    std::uintptr_t own_base = 0;
    std::atomic<std::uint64_t> extent{0};
    std::atomic<bool> fence_orders_only{false}; ///< no statistics, and nothing can be in flight
    std::size_t stream_threshold = 0;
    std::ptrdiff_t distance[num_entries] = {}; ///< from an own address to its counterpart
    std::int32_t rank[num_entries] = {};       ///< world rank that the entry belongs to
    std::atomic<bool> is_plain{false};         ///< nothing is to be counted or checked
};
extern fast_view g_fast;
/// Null before start-up and from the begin of the end on. Only to be used inside a public call.
extern std::atomic<runtime::runtime *> g_runtime;

/// This process in the job. Written before g_runtime, and still there when the runtime has ended.
struct job_numbers {
    int rank = 0;
    int size = 1;
    int local_rank = 0;
    int num_local_ranks = 1;
};
extern job_numbers g_job;

/// Symmetric memory has grown or shrunk.
void refresh_fast_view(runtime::runtime &running);

/// OpenMP's numbers of the devices that this rank drives; none if that is not known. Any thread.
std::vector<int> driven_devices();
/// Whether a device of OpenMP's is one of another host. Any thread.
bool is_remote_device(int device);
/// OpenMP's default device in the calling task; -1, the host, without OpenMP.
int default_device();
/// Tells libomptarget and the runtime of each other; in target.cpp.
void publish_devices(runtime::runtime &running);
/// The program's constructors have run: other ranks may ask for variables in its images.
void images_are_registered();
/// Makes the first of the rank's devices OpenMP's default device, unless the user has chosen one.
/// When the program's images are registered, which is when its main begins; in rank_device.cpp.
void bind_devices();
/// What transfers between devices have learned is void.
void forget_routes();
/// Before the runtime ends: waits until libomptarget is out of it and keeps it out from then on.
void close_devices();

/// Starts the runtime if it never ran. Prints and ends the process if that fails.
status start_runtime();
/// An error while other threads are in calls; then nothing has happened.
status finish_runtime();
/// The same at the beginning and the regular end of the process; errors end it. At the end other
/// threads may be in calls, which never return then.
void start_with_program();
void finish_with_program();
/// At the end of a process that fails: waits for no other rank.
void abandon_with_program();

/// For a thread in whose process another one is in exit(): touches the runtime no more, never
/// returns, and still handles signals.
[[noreturn]] void stay_until_the_end() noexcept;

/// Reports an error of an operation that has no caller any more, and ends the job. Returns only
/// while the process ends.
void fail_later(const char *function, const error &failure) noexcept;
/// Reports an error of a public function as the user chose: prints and ends the job, or keeps the
/// text and returns the code. Does not return to a thread that calls while another one ends the
/// process.
int fail(const char *function, const std::string &arguments, const error &failure) noexcept;
/// Why there is no runtime: not started, finished, or in a forked child.
error state_error();

inline error rank_error(int rank, int size) {
    return {
        OMPX_ERR_RANK,
        fmt::format("rank {} is outside the world of {} rank{}", rank, size, size == 1 ? "" : "s"),
        size == 1 ? std::string("pass 0, or start more ranks: diomp-run -n N ./program")
                  : fmt::format("pass a rank from 0 to {}", size - 1)};
}

inline status check_rank(runtime::runtime &running, int rank) {
    if (rank < 0 || rank >= running.job().size) {
        return rank_error(rank, running.job().size);
    }
    return {};
}

/// A barrier includes a fence: before it, since others go on as soon as this rank has come. What is
/// mapped the barrier itself orders.
inline status fence_before_barrier(runtime::runtime &running) {
    return running.transfers().all_direct() ? status{} : running.transfers().fence();
}

/// Sizes come from signed arithmetic more often than from memories of 8 EiB.
inline status check_size(std::size_t nbytes) {
    if (nbytes > static_cast<std::size_t>(PTRDIFF_MAX)) {
        return error(OMPX_ERR_ARG,
                     fmt::format("the size is negative or overflows (as a signed number: {})",
                                 static_cast<std::ptrdiff_t>(nbytes)),
                     "check the arithmetic that the size comes from");
    }
    return {};
}

inline status check_pointer(const void *pointer, const char *argument) {
    if (pointer == nullptr) {
        return error(OMPX_ERR_ARG, fmt::format("{} is a null pointer", argument),
                     "check that the memory was allocated; only transfers of 0 bytes may have "
                     "null pointers");
    }
    return {};
}

/// The arguments that every transfer has.
inline status check_transfer(runtime::runtime &running, int rank, const void *dst, const void *src,
                             std::size_t nbytes) {
    DIOMP_TRY(check_rank(running, rank));
    DIOMP_TRY(check_size(nbytes));
    if (nbytes > 0) {
        DIOMP_TRY(check_pointer(dst, "dst"));
        DIOMP_TRY(check_pointer(src, "src"));
    }
    return {};
}

/// What a call has to say to the statistics.
struct account {
    const char *way = "";
    std::size_t nbytes = 0;
};

/// Prints a table of statistics to DIOMP_STATS_FILE, `path`, or where that is empty to standard
/// error.
void print_table(const std::string &text, std::string path, int rank);
/// What the process's remote devices have for the trace goes to the rank's; in remote.cpp.
void hand_over_remote_trace(runtime::runtime &running);

/// Gives a call that has just ended to the statistics and the trace.
void observe(runtime::runtime &running, const char *function, const account &counted,
             std::chrono::steady_clock::time_point begin, const void *site);

/// Runs body(runtime, account) -> status. `arguments()` gives the text of the arguments, for
/// messages.
template <typename Arguments, typename Body>
int call(const char *function, const void *site, Arguments &&arguments, Body &&body) noexcept {
    stacks::public_call const here(function, arguments); // first: see stacks/calls.h
    runtime::runtime *running = g_runtime.load(std::memory_order_acquire);
    if (running == nullptr) [[unlikely]] {
        return fail(function, arguments(), state_error());
    }
    account counted;
    bool const counting = running->observes();
    auto const begin =
        counting ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point{};
    status const outcome = body(*running, counted);
    if (!outcome) [[unlikely]] {
        return fail(function, arguments(), outcome.failure());
    }
    if (counting) {
        observe(*running, function, counted, begin, site);
    }
    return OMPX_SUCCESS;
}

/// A use of the runtime that is no call with errors and statistics.
class use {
public:
    /// `function` is a literal.
    explicit use(const char *function)
        : here_(function, none), running_(g_runtime.load(std::memory_order_acquire)) {}

    /// Null: there is none.
    [[nodiscard]] runtime::runtime *running() const { return running_; }

private:
    struct no_arguments {
        std::string operator()() const { return {}; }
    };
    static constexpr no_arguments none{};

    stacks::public_call here_;
    runtime::runtime *running_;
};

} // namespace diomp::api

/// Call site of a public function, for DIOMP_STATS=callsites.
#define DIOMP_SITE __builtin_return_address(0)
