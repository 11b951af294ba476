// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "report.h"

#include "base/sizes.h"
#include "build_info.h"
#include "config/settings.h"
#include "machine.h"
#include "runtime_library.h"
#include "settings_page.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <unistd.h>
#include <vector>

namespace diomp::info {
namespace {

/// A rank's row. Trivially copyable, since it is sent by a put.
struct rank_row {
    std::array<char, 64> host{};
    int pid = 0;
    int local_rank = 0;
    ompx_segment_info_t segment{};
};

rank_row own_row(const runtime_library &library, const machine &here) {
    rank_row row;
    std::strncpy(row.host.data(), here.host.c_str(), row.host.size() - 1);
    row.pid = static_cast<int>(getpid());
    row.local_rank = library.local_rank();
    library.segment_info(&row.segment);
    return row;
}

/// Returns the path from rank 0 to each rank, which is known after a first transfer.
std::vector<std::string> query_paths(const runtime_library &library, const rank_row *shared,
                                     std::size_t num_ranks) {
    std::vector<std::string> paths;
    for (std::size_t rank = 0; rank < num_ranks; ++rank) {
        rank_row ignored;
        std::array<char, 4096> text{};
        int const peer = static_cast<int>(rank);
        bool const known = library.get(&ignored, peer, shared, sizeof ignored) == OMPX_SUCCESS &&
                           library.path_info(peer, text.data(), text.size()) == OMPX_SUCCESS;
        paths.emplace_back(known ? text.data() : "unknown");
    }
    return paths;
}

nlohmann::json machine_json(const machine &here) {
    nlohmann::json json = {{"host", here.host},
                           {"kernel", here.kernel},
                           {"cores", here.cores},
                           {"hardware_threads", here.hardware_threads},
                           {"usable_threads", here.usable_threads},
                           {"numa_nodes", here.numa_nodes},
                           {"memory_bytes", here.memory_bytes},
                           {"available_bytes", here.available_bytes}};
    json["cpu_quota"] = here.cpu_quota ? nlohmann::json(*here.cpu_quota) : nlohmann::json();
    json["memory_limit_bytes"] =
        here.memory_limit_bytes ? nlohmann::json(*here.memory_limit_bytes) : nlohmann::json();
    return json;
}

nlohmann::json ranks_json(const std::vector<rank_row> &rows,
                          const std::vector<std::string> &paths) {
    nlohmann::json list = nlohmann::json::array();
    for (std::size_t rank = 0; rank < rows.size(); ++rank) {
        rank_row const &row = rows[rank];
        list.push_back({{"rank", rank},
                        {"host", row.host.data()},
                        {"pid", row.pid},
                        {"local_rank", row.local_rank},
                        {"path_from_rank_0", paths[rank]},
                        {"segment",
                         {{"base", reinterpret_cast<std::uintptr_t>(row.segment.base)},
                          {"nbytes", row.segment.nbytes},
                          {"symmetric_used", row.segment.symmetric_used},
                          {"local_used", row.segment.local_used},
                          {"largest_free", row.segment.largest_free},
                          {"resident", row.segment.resident},
                          {"num_allocations", row.segment.num_allocations}}}});
    }
    return list;
}

void print_machine(const machine &here) {
    fmt::print("machine    {}, Linux {}\n", here.host, here.kernel);
    fmt::print("cores      {} cores, {} hardware threads, {} usable here, {} NUMA node{}\n",
               here.cores, here.hardware_threads, here.usable_threads, here.numa_nodes,
               here.numa_nodes == 1 ? "" : "s");
    if (here.cpu_quota) {
        fmt::print("           control group grants the time of {:.1f} cores\n", *here.cpu_quota);
    }
    fmt::print("memory     {}, {} available\n", format_size(here.memory_bytes),
               format_size(here.available_bytes));
    if (here.memory_limit_bytes) {
        fmt::print("           control group grants {}\n", format_size(*here.memory_limit_bytes));
    }
}

void print_ranks(const std::vector<rank_row> &rows) {
    fmt::print("\nranks\n  {:>5} {:<20} {:>8}  {:<18} {:>10} {:>12} {:>10}\n", "rank", "host",
               "pid", "segment at", "reserved", "largest free", "resident");
    for (std::size_t rank = 0; rank < rows.size(); ++rank) {
        rank_row const &row = rows[rank];
        fmt::print("  {:>5} {:<20} {:>8}  {:<18} {:>10} {:>12} {:>10}\n", rank, row.host.data(),
                   row.pid, row.segment.base, format_size(row.segment.nbytes),
                   format_size(row.segment.largest_free), format_size(row.segment.resident));
    }
}

/// Prints one line for all ranks with the same path.
void print_paths(const std::vector<std::string> &paths, const std::string &setting) {
    fmt::print("conduit    {} (DIOMP_CONDUIT); from rank 0 to\n", setting);
    for (std::size_t rank = 0; rank < paths.size(); ++rank) {
        auto const end = paths.begin() + static_cast<std::ptrdiff_t>(rank);
        if (std::find(paths.begin(), end, paths[rank]) != end) {
            continue;
        }
        std::string ranks;
        for (std::size_t first = rank; first < paths.size(); ++first) {
            if (paths[first] != paths[rank]) {
                continue;
            }
            std::size_t last = first;
            while (last + 1 < paths.size() && paths[last + 1] == paths[rank]) {
                ++last;
            }
            ranks += ranks.empty() ? "" : ",";
            ranks += first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
            first = last;
        }
        fmt::print("           {}: {}\n", ranks, paths[rank]);
    }
}

} // namespace

int print_report(bool as_json) {
    auto library = open_runtime();
    if (!library) {
        fmt::print(stderr, "diomp-info: {}\n  {}\n", library.failure().message(),
                   library.failure().remedy());
        return 1;
    }
    runtime_library const &runtime = library.value();
    auto environment = read_environment();
    if (runtime.init() != OMPX_SUCCESS || !environment) {
        return 1; // the runtime has printed the reason
    }
    machine const here = inspect_machine();
    rank_row const own = own_row(runtime, here);
    auto const num_ranks = static_cast<std::size_t>(runtime.num_ranks());
    // Rank 0 collects the rows in global memory, which is available as soon as the runtime is.
    auto *shared = static_cast<rank_row *>(
        runtime.alloc(num_ranks * sizeof(rank_row), alignof(rank_row), OMPX_MEM_SYMMETRIC));
    if (shared == nullptr ||
        runtime.put(0, &shared[runtime.rank()], &own, sizeof own) != OMPX_SUCCESS ||
        runtime.barrier(ompx_group_world) != OMPX_SUCCESS) {
        return 1;
    }
    if (runtime.rank() == 0) {
        std::vector<rank_row> const rows(shared, shared + num_ranks);
        settings const &values = environment.value().values;
        std::vector<std::string> const paths = query_paths(runtime, shared, num_ranks);
        if (as_json) {
            nlohmann::json const json = {
                {"version", DIOMP_VERSION},
                {"build", build_json()},
                {"library", {{"path", runtime.path}, {"version", runtime.version}}},
                {"machine", machine_json(here)},
                {"ranks", ranks_json(rows, paths)},
                {"settings", settings_json(values)}};
            fmt::print("{}\n", json.dump(2));
        } else {
            fmt::print("DiOMP      {}\nlibrary    {}\n{}", DIOMP_VERSION, runtime.path,
                       build_text());
            print_machine(here);
            print_paths(paths, values.transport.conduit);
            print_ranks(rows);
            fmt::print("\nsettings (all: diomp-info --settings)\n{}", set_text(values));
        }
        std::fflush(stdout);
    }
    return runtime.finalize() == OMPX_SUCCESS ? 0 : 1;
}

} // namespace diomp::info
