// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The command line that diomp-bench and the peers' programs share.
#pragma once

#include "measure.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace diomp::bench {

struct options {
    std::vector<std::string> benchmarks; ///< subcommands in the order given
    bool all = false;                    ///< `all` was one of them
    std::vector<std::size_t> sizes;      ///< empty: each benchmark's own
    std::vector<int> threads{1, 2};
    std::size_t window_places = 64; ///< that transfers of a window take turns at
    sampling how;
    std::string json;
    std::string csv;

    [[nodiscard]] bool wants(const std::string &benchmark) const {
        return std::find(benchmarks.begin(), benchmarks.end(), benchmark) != benchmarks.end();
    }
    /// Only `rate` calls from more than one thread. Elsewhere a library need not lock.
    [[nodiscard]] bool several_threads() const {
        return wants("rate") &&
               std::any_of(threads.begin(), threads.end(), [](int n) { return n > 1; });
    }
};

struct subcommand {
    const char *name;
    const char *help;
};

/// An option that takes a number from `least` to `most`.
struct number_option {
    const char *name;
    const char *help;
    int *value; ///< its default before, what was given after
    int least;
    int most;
};

struct text_option {
    const char *name;
    const char *help; ///< nullptr: not for people, left out of the help
    std::string *value;
    bool required = false;
};

/// What a program's command line has of its own.
struct own_options {
    std::vector<subcommand> subcommands{};
    std::vector<number_option> numbers{};
    std::vector<text_option> texts{};
};

/// For a program whose start-up bench/compare times.
inline constexpr subcommand hello{"hello", "start, meet, end: for timing the start-up"};

/// The command line of a program that runs the benchmarks. Like the next two, it ends the program
/// where the line is wrong or asks for help.
options parse_benchmarks(const char *about, int argc, char **argv, const own_options &own = {});

/// Of one that runs a few benchmarks by size, chosen with --only; all of them by default.
options parse_selection(const char *about, int argc, char **argv,
                        const std::vector<std::string> &known);

/// Of one that measures something else: only how long, and where the rows go.
options parse_measurement(const char *about, int argc, char **argv);

} // namespace diomp::bench
