// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// DIOMP_TRACE: when each call was made and how long it took, and how long transfers were on their
// way, as a file in the Chrome trace format, which Perfetto opens (ui.perfetto.dev).
//
// Glossary: slice: a call of one thread, from entry to return. flight: a transfer from its start to
// the moment at which this rank knew that it was complete; it may cover many calls, and computation
// between them: what is under a flight and in no slice is communication that was hidden.
#pragma once

#include "launch/launch.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace diomp::runtime {

/// Any thread. Costs nothing when off: callers ask enabled() first.
class trace {
public:
    using time_point = std::chrono::steady_clock::time_point;
    /// Beyond this many events of a rank, further ones are counted and left out (some 60 bytes
    /// each).
    static constexpr std::size_t max_events = std::size_t{4} << 20;

    /// Empty path: off. "%r" in it is the rank; without, the rank is put before the extension.
    explicit trace(std::string path) : path_(std::move(path)) {}

    [[nodiscard]] bool enabled() const { return !path_.empty(); }

    /// Names are string literals; `way` may be "".
    void slice(const char *function, const char *way, std::size_t nbytes, time_point begin,
               time_point end);
    /// `way` is "put to" or "get from".
    void flight(const char *way, int peer, std::size_t nbytes, time_point begin, time_point end);

    /// Anything else that takes a time and belongs to no thread.
    void interval(const char *name, std::size_t nbytes, time_point begin, time_point end);
    /// Takes all that another one has.
    void take_from(trace &other);

    /// Writes the file of this rank. Blocks.
    status write(const launch::job_info &job);

private:
    struct event {
        const char *name;
        const char *way;
        std::int64_t begin_ns;
        std::int64_t nanoseconds;
        std::uint64_t nbytes;
        std::int32_t thread; ///< system's number of it; of a flight 0
        std::int32_t peer;   ///< of a flight, else -1; of an interval: no_peer
    };
    static constexpr std::int32_t no_peer = -2;

    void add(const event &happened);
    /// `number` distinguishes flights.
    static std::string describe(const event &each, int rank, std::int64_t offset_ns,
                                std::uint64_t number);
    [[nodiscard]] std::string path_of(world_rank rank, int num_ranks) const;

    std::string path_;
    std::mutex mutex_; ///< leaf lock over the rest
    std::vector<event> events_;
    std::uint64_t num_dropped_ = 0;
};

} // namespace diomp::runtime
