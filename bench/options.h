// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The command line that diomp-bench and the peers' programs share.
#pragma once

#include "measure.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace diomp::bench {

struct options {
    std::vector<std::string> benchmarks; ///< subcommands in the order given
    bool all = false;                    ///< `all` was one of them
    std::vector<std::size_t> sizes;      ///< empty: each benchmark's own
    std::vector<int> threads{1, 2};
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

inline const std::vector<subcommand> &common_subcommands() {
    static const std::vector<subcommand> table{
        {"put", "latency of put + fence, rank 0 to rank 1, by size"},
        {"get", "latency of get, rank 0 from rank 1, by size"},
        {"signal", "latency of put with signal, one way, by size"},
        {"bandwidth", "many puts (gets), then one completion, by size"},
        {"rate", "8-byte puts from 1 .. N threads of rank 0 to rank 1"},
        {"barrier", "barrier of all ranks"},
        {"lock", "lock + unlock at rank 1: rank 0 alone, and all ranks"},
        {"atomic", "fetch_add at rank 1: rank 0 alone, and all ranks"},
        {"bcast", "broadcast from rank 0, by size"},
        {"reduce", "sum of doubles to rank 0, by size"},
        {"allreduce", "sum of doubles, by size"},
        {"gather", "gather to rank 0, by size per rank"},
        {"scatter", "scatter from rank 0, by size per rank"},
        {"allgather", "allgather, by size per rank"},
        {"reduce_scatter", "block reduce-scatter of doubles, by size per rank"},
        {"alltoall", "all to all, by size per pair"}};
    return table;
}

/// How long to measure, and where the rows go.
inline void declare_measurement(CLI::App &app, options &into) {
    app.add_option("--min-time", into.how.min_time_s, "least seconds per sample")
        ->check(CLI::Range(1e-6, 60.0))
        ->capture_default_str();
    app.add_option("--repeat", into.how.samples, "samples per measurement")
        ->check(CLI::Range(1, 10000))
        ->capture_default_str();
    app.add_option("--json", into.json, "write the rows to this file as JSON");
    app.add_option("--csv", into.csv, "write the rows to this file as CSV");
}

/// Options stand before or after the subcommands, of which there may be several.
inline void declare_options(CLI::App &app, options &into) {
    app.add_option("--sizes", into.sizes, "sizes in bytes, such as 8,4KiB,1MiB")
        ->delimiter(',')
        ->transform(CLI::AsSizeValue(false));
    app.add_option("--threads", into.threads, "numbers of threads for rate, such as 1,2")
        ->delimiter(',')
        ->check(CLI::Range(1, 1024));
    declare_measurement(app, into);
    app.require_subcommand(1, 0);
    app.fallthrough();
    for (const subcommand &entry : common_subcommands()) {
        app.add_subcommand(entry.name, entry.help)->fallthrough();
    }
    app.add_subcommand("all", "all of the above")->fallthrough();
}

/// For a program whose start-up bench/compare times.
inline void declare_hello(CLI::App &app) {
    app.add_subcommand("hello", "start, meet, end: for timing the start-up")->fallthrough();
}

inline void collect_benchmarks(const CLI::App &app, options &into) {
    for (const CLI::App *chosen : app.get_subcommands()) {
        if (chosen->get_name() != "all") {
            into.benchmarks.push_back(chosen->get_name());
            continue;
        }
        into.all = true;
        for (const subcommand &entry : common_subcommands()) {
            into.benchmarks.emplace_back(entry.name);
        }
    }
}

/// Ends the program where the line is wrong or asks for help.
inline void parse(CLI::App &app, int argc, char **argv) {
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError &failure) {
        std::exit(app.exit(failure));
    }
}

/// The command line of a program that runs the benchmarks; `declare` adds what is its own.
inline options parse_benchmarks(const char *about, int argc, char **argv,
                                const std::function<void(CLI::App &)> &declare = {}) {
    CLI::App app{about};
    options wanted;
    declare_options(app, wanted);
    if (declare) {
        declare(app);
    }
    parse(app, argc, argv);
    collect_benchmarks(app, wanted);
    return wanted;
}

/// And of one that measures something else.
inline options parse_measurement(const char *about, int argc, char **argv) {
    CLI::App app{about};
    options wanted;
    declare_measurement(app, wanted);
    parse(app, argc, argv);
    return wanted;
}

} // namespace diomp::bench
