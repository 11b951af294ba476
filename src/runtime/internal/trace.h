// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// DIOMP_TRACE: begin and duration of each call, and of transfers in flight, as a file in the Chrome
// trace format, which Perfetto opens (ui.perfetto.dev). diomp-trace puts the ranks' files into one.
//
// Terms: a slice is a call of one thread, from entry to return. A flight is a transfer from its
// start until this rank observed its completion; it may span many calls and the computation between
// them. Time in a flight but in no slice is communication overlapped with computation.
#pragma once

#include "launch/launch.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace diomp::runtime {

/// Any thread. Costs nothing when off: callers check enabled() first.
class trace {
public:
    using time_point = std::chrono::steady_clock::time_point;
    /// Further events of a rank are counted but not kept (56 bytes each).
    static constexpr std::size_t max_events = std::size_t{4} << 20;
    static constexpr int no_peer = -1;
    static constexpr std::uint64_t no_group = ~std::uint64_t{0};

    /// A call. Names are string literals; `path` may be "".
    struct call {
        const char *function;
        const char *path;
        std::size_t nbytes;
        int peer;            ///< world rank, or no_peer
        std::uint64_t group; ///< its id, equal on all members, or no_group
    };

    /// An empty path disables the trace. "%r" in it is replaced by the rank; a path without "%r"
    /// gets the rank before its extension.
    explicit trace(std::string path) : path_(std::move(path)) {}

    [[nodiscard]] bool enabled() const { return !path_.empty(); }

    void slice(const call &what, time_point begin, time_point end);
    /// `path` is "put to" or "get from".
    void flight(const char *path, int peer, std::size_t nbytes, time_point begin, time_point end);

    /// Adds any other interval that belongs to no thread.
    void interval(const char *name, std::size_t nbytes, time_point begin, time_point end);
    /// Moves all events of another trace into this one.
    void take_from(trace &other);

    /// Writes the file of this rank. Blocks. Errors: the file cannot be written.
    status write(const launch::job_info &job);

private:
    struct trace_event {
        const char *name;
        const char *path;
        std::int64_t begin_ns;
        std::int64_t nanoseconds;
        std::uint64_t nbytes;
        std::uint64_t group;
        std::int32_t thread; ///< system's thread id; no_thread for a flight
        std::int32_t peer;
    };
    static constexpr std::int32_t no_thread = 0;

    void add(const trace_event &happened);
    /// Keeps the name of the calling thread, which may have ended when the trace is written.
    void note_thread(std::int32_t thread);
    [[nodiscard]] std::string thread_names(int rank) const;
    static std::string describe_call(const trace_event &each, int rank, double begin_us);
    /// The JSON of an event; `number` is the id of a flight.
    static std::string describe(const trace_event &each, int rank, std::int64_t offset_ns,
                                std::uint64_t number);
    [[nodiscard]] std::string path_of(world_rank rank, int num_ranks) const;

    std::string path_;
    std::mutex mutex_; ///< leaf lock; guards the members below
    std::vector<trace_event> events_;
    std::map<std::int32_t, std::string> threads_; ///< names
    std::uint64_t num_dropped_ = 0;
};

} // namespace diomp::runtime
