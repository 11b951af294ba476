// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "options.h"

#include <CLI/CLI.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace diomp::bench {
namespace {

const std::vector<subcommand> &common_subcommands() {
    static const std::vector<subcommand> table{
        {"put", "latency of put + fence, rank 0 to rank 1, by size"},
        {"put_event", "latency of put until its own event is complete, by size"},
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

void add_measurement_options(CLI::App &app, options &into) {
    // Comparisons with NaN are false, so that a range does not refuse it.
    CLI::Validator const is_number(
        [](const std::string &text) {
            return std::isnan(std::strtod(text.c_str(), nullptr)) ? "it is not a number" : "";
        },
        "");
    app.add_option("--min-time", into.how.min_time_s, "minimum seconds per sample")
        ->check(CLI::Range(1e-6, 60.0))
        ->check(is_number)
        ->capture_default_str();
    app.add_option("--repeat", into.how.samples, "samples per measurement")
        ->check(CLI::Range(1, 10000))
        ->capture_default_str();
    app.add_option("--warm-up", into.how.warm_up_s, "seconds before the first measurement")
        ->check(CLI::Range(0.0, 60.0))
        ->check(is_number)
        ->capture_default_str();
    app.add_option("--json", into.json, "write the rows to this file as JSON");
    app.add_option("--csv", into.csv, "write the rows to this file as CSV");
}

void add_size_options(CLI::App &app, options &into) {
    app.add_option("--sizes", into.sizes, "sizes in bytes, such as 8,4KiB,1MiB")
        ->delimiter(',')
        ->transform(CLI::AsSizeValue(false));
}

/// Adds options that may be given before or after the subcommands, of which there may be several.
void add_benchmark_options(CLI::App &app, options &into) {
    add_size_options(app, into);
    app.add_option("--threads", into.threads, "numbers of threads for rate, such as 1,2")
        ->delimiter(',')
        ->check(CLI::Range(1, 1024));
    app.add_option("--window-places", into.window_places,
                   "addresses that the transfers of a window of bandwidth use in turn; 1: all use "
                   "one, as in other libraries' tests")
        ->check(CLI::Range(1, 64))
        ->capture_default_str();
    add_measurement_options(app, into);
    app.require_subcommand(1, 0);
    app.fallthrough();
    for (const subcommand &entry : common_subcommands()) {
        app.add_subcommand(entry.name, entry.help)->fallthrough();
    }
    app.add_subcommand("all", "all of the above")->fallthrough();
}

void add_own_options(CLI::App &app, const own_options &own) {
    for (const subcommand &entry : own.subcommands) {
        app.add_subcommand(entry.name, entry.help)->fallthrough();
    }
    for (const number_option &entry : own.numbers) {
        app.add_option(entry.name, *entry.value, entry.help)
            ->check(CLI::Range(entry.min_value, entry.max_value))
            ->capture_default_str();
    }
    for (const text_option &entry : own.texts) {
        const bool hidden = entry.help == nullptr;
        CLI::Option *const option =
            app.add_option(entry.name, *entry.value, hidden ? "" : entry.help)
                ->required(entry.required);
        if (hidden) {
            option->group("");
        }
    }
}

void collect_benchmarks(const CLI::App &app, options &into) {
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

void parse(CLI::App &app, int argc, char **argv) {
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError &failure) {
        int const status = app.exit(failure);
        if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
            std::fputs("standard output cannot be written\n", stderr);
            std::exit(EXIT_FAILURE);
        }
        std::exit(status);
    }
}

} // namespace

options parse_benchmarks(const char *about, int argc, char **argv, const own_options &own) {
    CLI::App app{about};
    options wanted;
    add_benchmark_options(app, wanted);
    add_own_options(app, own);
    parse(app, argc, argv);
    collect_benchmarks(app, wanted);
    return wanted;
}

options parse_selection(const char *about, int argc, char **argv,
                        const std::vector<std::string> &known) {
    CLI::App app{about};
    options wanted;
    add_size_options(app, wanted);
    app.add_option("--only", wanted.benchmarks, "some of the benchmarks")
        ->delimiter(',')
        ->check(CLI::IsMember(known));
    add_measurement_options(app, wanted);
    parse(app, argc, argv);
    if (wanted.benchmarks.empty()) {
        wanted.benchmarks = known;
    }
    return wanted;
}

options parse_measurement(const char *about, int argc, char **argv) {
    CLI::App app{about};
    options wanted;
    add_measurement_options(app, wanted);
    parse(app, argc, argv);
    return wanted;
}

} // namespace diomp::bench
