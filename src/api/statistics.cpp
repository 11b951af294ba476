// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Statistics and traces of public calls: what a call adds, and their output at the end.
#include "api/internal/state.h"
#include "base/log.h"
#include "base/output_file.h"
#include "diomp/binding.hpp"
#include "memory/memory.h"

#include <atomic>
#include <cstdio>

namespace diomp::api {
namespace {

/// The statistics file exists: a second table of this process (rank, remote devices) is appended.
std::atomic<bool> g_has_table{false};

void print_statistics(runtime::runtime &running) {
    auto const cache = running.space().cache_counts();
    std::string const text = running.stats().table(
        fmt::format("diomp: statistics of rank {} of {} on {}", running.job().rank.value(),
                    running.job().size, running.job().host),
        {{"second-level pointers fetched", cache.fetched},
         {"second-level pointers found in the cache", cache.hits}});
    print_table(text, running.values().runtime.stats_file, running.job().rank.value());
}

} // namespace

void observe(runtime::runtime &running, const char *function, const call_stats &stats,
             std::chrono::steady_clock::time_point begin, const void *site) {
    auto const end = std::chrono::steady_clock::now();
    if (running.stats().enabled()) {
        running.stats().record(function, stats.path, stats.nbytes, end - begin,
                               ompx_fortran_site != nullptr ? ompx_fortran_site : site);
    }
    if (running.tracer().enabled()) {
        running.tracer().slice({function, stats.path, stats.nbytes, stats.peer, stats.group}, begin,
                               end);
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
    bool const is_first = !g_has_table.exchange(true);
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

void report_statistics(runtime::runtime &running) {
    if (running.stats().enabled()) {
        print_statistics(running);
    }
    if (running.tracer().enabled()) {
        hand_over_remote_trace(running);
        if (status const written = running.tracer().write(running.job()); !written) {
            log(log_level::warn, "{}", written.failure().message());
        }
    }
}

} // namespace diomp::api
