// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The only globals above base: the runtime, and the data that the fast path of put and get needs.
// Every C function goes through call() or query(), which check the state and turn errors into
// status codes and messages.
#pragma once

#include "runtime/runtime.h"
#include "stacks/waiting.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct diomp_offload_table;

namespace diomp::launch {
class launcher;
}

namespace diomp::offload {
class remote_memory;
}

namespace diomp::api {

/// Data of the fast path: transfers on symmetric memory of directly mapped ranks. `extent` is 0 if
/// the fast path must not be taken (no runtime, statistics, checks); every transfer then takes the
/// slow path.
///
/// A put after a fence starts with an empty pipeline, so its latency is the longest chain of loads:
/// one here, from the rank to the distance of its segment. A pointer to a table would make it two.
/// The table is indexed by the last bits of the rank: ranks of a node usually have consecutive
/// numbers, so each has its own entry even in a large world. Remote ranks and invalid ranks find an
/// entry of another rank.
struct alignas(64) fast_view {
    static constexpr std::size_t num_entries = 256;
    [[nodiscard]] static std::size_t entry_of(int rank) {
        return static_cast<std::uint8_t>(rank); // zero extension, no mask to load
    }

    std::uintptr_t own_base = 0;
    std::atomic<std::uint64_t> extent{0};
    std::atomic<bool> fence_orders_only{false}; ///< no statistics, and no transfer can be in flight
    std::size_t stream_threshold = 0;
    std::ptrdiff_t distance[num_entries] = {}; ///< from a local address to its counterpart
    std::int32_t rank[num_entries] = {};       ///< world rank that the entry belongs to
    std::atomic<bool> is_plain{false};         ///< neither statistics nor checks
    /// Number of threads of the node that sleep until a store; null if atomics must not take the
    /// fast path, as they are the network's.
    const std::atomic<std::uint32_t> *store_sleepers = nullptr;
    /// Static data that was moved to symmetric memory. Base and distance are written once, before
    /// the extent is first set.
    std::atomic<std::uint64_t> moved_extent{0};
    std::uintptr_t moved_base = 0;
    std::uintptr_t moved_distance = 0; ///< from an address to the same data in the own segment
};
extern fast_view g_fast;
/// Null before start-up and once shutdown has begun. Use only inside a public call.
extern std::atomic<runtime::runtime *> g_runtime;

/// Recordings of plans that have not ended, of all threads; fast paths are closed meanwhile.
extern std::atomic<int> g_recordings;
/// A call of a thread that may be recording a plan. In plan.cpp.
void note_recorded_call(runtime::runtime &running, const char *function);

/// This process in the job. Written before g_runtime; still valid after the runtime has ended.
struct job_numbers {
    int rank = 0;
    int size = 1;
    int local_rank = 0;
    int num_local_ranks = 1;
};
extern job_numbers g_job;

/// Fills g_fast at the start of the runtime. In fast_view.cpp, like the next three.
void fill_fast_view(runtime::runtime &running);
/// Updates g_fast; call after symmetric memory has grown or shrunk.
void refresh_fast_view(runtime::runtime &running);
/// Updates its static data; call after a symmetric range has been registered or unregistered.
void refresh_moved_data(runtime::runtime &running);
/// Transfers take the slow path until refresh_fast_view().
void close_fast_view();

/// OpenMP's numbers of the devices that this rank drives; empty if unknown. Any thread.
std::vector<int> driven_devices();
/// Whether an OpenMP device is on another host. Any thread.
bool is_remote_device(int device);
/// Connects this rank to its remote devices, in a world of the job's ranks and the devices of all
/// of them. Collective over a job that has remote devices; blocks. The result, their memory, lives
/// until the process ends. In remote.cpp.
result<offload::remote_memory *> join_remote_devices(launch::launcher &job);
/// Ends the connections of join_remote_devices() that libomptarget has not taken over.
void leave_remote_devices();
/// OpenMP's default device in the calling task; without OpenMP -1, the host.
int default_device();
/// Connects libomptarget and the runtime; in offload_table.cpp.
/// `remote`: see offload::openmp.
void publish_devices(runtime::runtime &running, offload::remote_memory *remote);
/// What libomptarget calls.
const diomp_offload_table *offload_table();
/// Call after the program's constructors: other ranks may look up variables in its images.
void on_images_registered();
/// Makes the rank's first device OpenMP's default device, unless the user has set one. Call when
/// main begins: the program's images must be registered. In rank_device.cpp.
void bind_devices();
/// Invalidates the cached translations of transfers between devices.
void invalidate_translations();
/// Call before the runtime ends: waits for libomptarget's active calls and rejects later ones.
void close_devices();

/// Starts the runtime; no operation if it runs. Errors: OMPX_ERR_STATE if it has
/// ended; errors of the launcher and of modules.
/// `given`: the launcher; null: the one that has started this process.
status start_runtime(std::unique_ptr<launch::launcher> given = {});
/// Ends the runtime. Collective; blocks. Errors: OMPX_ERR_STATE if another thread is in a call; the
/// runtime then keeps running.
status finish_runtime();
/// Start and end the runtime with the process; errors end the process. At its end, other threads
/// may be in calls; these never return.
void start_at_load();
void finish_at_exit();
/// Ends the runtime of a process that fails, without waiting for other ranks.
void abandon_at_exit();

/// For a thread whose process is being ended by another thread: stops using the runtime and blocks
/// forever, but still handles signals.
[[noreturn]] void block_until_process_ends() noexcept;

/// Reports an error of an operation whose call has returned, and ends the job. Returns only while
/// the process ends.
void fail_later(const char *function, const error &failure) noexcept;
/// Reports an error of a public function in the mode in effect (error_mode.h): prints it and ends
/// the job, or keeps the text for ompx_last_error() and returns the code. Does not return if
/// another thread ends the process.
int fail(const char *function, const std::string &arguments, const error &failure) noexcept;
/// The error of a call without a runtime: not started, ended, or in a forked child.
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

/// Rejects sizes above PTRDIFF_MAX, which are usually negative results of signed arithmetic.
inline status check_size(std::size_t nbytes) {
    if (nbytes > static_cast<std::size_t>(PTRDIFF_MAX)) {
        return error(OMPX_ERR_ARG,
                     fmt::format("the size is negative or overflows (as a signed number: {})",
                                 static_cast<std::ptrdiff_t>(nbytes)),
                     "check the arithmetic that the size comes from");
    }
    return {};
}

/// Number of elements that fit into memory.
constexpr std::size_t max_elements(std::size_t element_bytes) {
    return static_cast<std::size_t>(PTRDIFF_MAX) / element_bytes;
}

/// Checks the length of a list, before its elements are read.
inline status check_count(std::size_t count, std::size_t element_bytes) {
    if (count > max_elements(element_bytes)) {
        return error(OMPX_ERR_ARG,
                     fmt::format("the count is negative or overflows (as a signed number: {})",
                                 static_cast<std::ptrdiff_t>(count)),
                     "check the arithmetic that the count comes from");
    }
    return {};
}

inline status check_pointer(const void *pointer, const char *argument) {
    if (pointer == nullptr) {
        std::string_view const name = argument;
        return error(OMPX_ERR_ARG, fmt::format("{} is a null pointer", argument),
                     name == "dst" || name == "src"
                         ? "check that the memory was allocated; only transfers of 0 bytes may "
                           "have null pointers"
                         : "pass the address of a variable");
    }
    return {};
}

/// Checks the arguments that all transfers have.
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

/// What a call did, for statistics and trace.
struct call_stats {
    const char *path = "";
    std::size_t nbytes = 0;
    int peer = runtime::trace::no_peer;             ///< world rank
    std::uint64_t group = runtime::trace::no_group; ///< its id
};

/// Prints a table of statistics to the file `path` (DIOMP_STATS_FILE), or to standard error if it
/// is empty.
void print_table(const std::string &text, std::string path, int rank);
/// Writes statistics and trace, after the runtime's threads have stopped.
void report_statistics(runtime::runtime &running);
/// Moves the trace events of the process's remote devices into the rank's trace; in remote.cpp.
void hand_over_remote_trace(runtime::runtime &running);

/// Records a finished call in statistics and trace.
void observe(runtime::runtime &running, const char *function, const call_stats &stats,
             std::chrono::steady_clock::time_point begin, const void *site);

/// Runs body(runtime, call_stats) -> status, the frame of every public function. `arguments()`
/// returns the text of the arguments for messages.
template <typename Arguments, typename Body>
int call(const char *function, const void *site, Arguments &&arguments, Body &&body) noexcept {
    stacks::public_call const here(function, arguments); // first: see stacks/calls.h
    runtime::runtime *running = g_runtime.load(std::memory_order_acquire);
    if (running == nullptr) [[unlikely]] {
        return fail(function, arguments(), state_error());
    }
    if (g_recordings.load(std::memory_order_relaxed) != 0) [[unlikely]] {
        note_recorded_call(*running, function);
    }
    call_stats stats;
    bool const counting = running->observes();
    auto const begin =
        counting ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point{};
    status const outcome = body(*running, stats);
    if (!outcome) [[unlikely]] {
        return fail(function, arguments(), outcome.failure());
    }
    if (counting) {
        observe(*running, function, stats, begin, site);
    }
    return OMPX_SUCCESS;
}

/// Access to the runtime in a public function without errors and statistics; keeps the runtime from
/// ending.
class runtime_access {
public:
    /// `function` is a string literal.
    explicit runtime_access(const char *function)
        : here_(function, none), running_(g_runtime.load(std::memory_order_acquire)) {}

    /// Null without a runtime.
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
