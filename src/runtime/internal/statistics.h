// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// DIOMP_STATS: number, bytes and time of calls, by function, path and (callsites) call site in the
// program.
#pragma once

#include "config/settings.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace diomp::stacks {
class call_site_finder;
}

namespace diomp::runtime {

/// Any thread. Costs nothing when off: callers check enabled() first.
class statistics {
public:
    explicit statistics(stats_mode mode);
    ~statistics();
    statistics(const statistics &) = delete;
    statistics &operator=(const statistics &) = delete;

    [[nodiscard]] bool enabled() const { return mode_ != stats_mode::off; }

    /// One finished call, which the calling thread is still in. `function` and `path` are string
    /// literals; `path` may be "". `site` is the return address.
    void record(const char *function, const char *path, std::size_t nbytes,
                std::chrono::nanoseconds time, const void *site);

    /// Adds many finished calls: their number, and the sum and the longest of their times.
    void record_all(const char *function, const char *path, std::uint64_t calls, std::size_t nbytes,
                    std::chrono::nanoseconds total, std::chrono::nanoseconds longest);

    struct extra {
        const char *name;
        std::uint64_t value;
    };
    /// The table, with `heading` as its first line and further counters at its end.
    [[nodiscard]] std::string table(const std::string &heading,
                                    std::initializer_list<extra> extras) const;

private:
    struct key {
        const char *function;
        const char *path;
        const void *site;
        auto operator<=>(const key &) const = default;
    };
    struct totals {
        std::uint64_t calls = 0;
        std::uint64_t nbytes = 0;
        std::uint64_t nanoseconds = 0;
        std::uint64_t longest_ns = 0;
    };

    stats_mode mode_;
    /// The places of call sites and, as text, their functions and lines.
    [[nodiscard]] static std::map<const void *, std::string>
    describe_sites(const std::vector<std::pair<key, totals>> &rows);

    mutable std::mutex mutex_;                        ///< leaf lock over the rest
    std::unique_ptr<stacks::call_site_finder> sites_; ///< null unless the mode is callsites
    std::map<key, totals> totals_;
};

} // namespace diomp::runtime
