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
    std::vector<std::string> benchmarks; ///< subcommands in the given order
    bool all = false;                    ///< `all` was one of them
    std::vector<std::size_t> sizes;      ///< empty: each benchmark's own
    std::vector<int> threads{1, 2};
    std::size_t window_places = 64; ///< addresses that the transfers of a window cycle through
    sampling how;
    std::string json;
    std::string csv;

    [[nodiscard]] bool wants(const std::string &benchmark) const {
        return std::find(benchmarks.begin(), benchmarks.end(), benchmark) != benchmarks.end();
    }
    /// Returns whether several threads make calls: only `rate` does. Otherwise a library need not
    /// lock.
    [[nodiscard]] bool several_threads() const {
        return wants("rate") &&
               std::any_of(threads.begin(), threads.end(), [](int n) { return n > 1; });
    }
};

struct subcommand {
    const char *name;
    const char *help;
};

/// An option that takes a number from `min_value` to `max_value`.
struct number_option {
    const char *name;
    const char *help;
    int *value; ///< in: the default; out: the given value
    int min_value;
    int max_value;
};

struct text_option {
    const char *name;
    const char *help; ///< nullptr: internal, not in the help
    std::string *value;
    bool required = false;
};

/// Options of one program only.
struct own_options {
    std::vector<subcommand> subcommands{};
    std::vector<number_option> numbers{};
    std::vector<text_option> texts{};
};

/// For a program whose start-up bench/compare times.
inline constexpr subcommand hello{"hello", "start, barrier, end: for timing the start-up"};

/// Parses the command line of a program that runs the benchmarks. Ends the program if the command
/// line is wrong or asks for help.
options parse_benchmarks(const char *about, int argc, char **argv, const own_options &own = {});

/// Parses the command line of a program that runs a few benchmarks by size, chosen with --only; all
/// of them by default. Ends the program as parse_benchmarks does.
options parse_selection(const char *about, int argc, char **argv,
                        const std::vector<std::string> &known);

/// Parses the command line of a program that measures something else: only times and output files.
/// Ends the program as parse_benchmarks does.
options parse_measurement(const char *about, int argc, char **argv);

} // namespace diomp::bench
