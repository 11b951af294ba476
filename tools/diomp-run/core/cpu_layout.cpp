// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cpu_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sched.h>
#include <string_view>

namespace diomp::run {

std::string read_siblings(int cpu) {
    std::string line;
    std::getline(std::ifstream(fmt::format(
                     "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu)),
                 line);
    return line;
}

cpu_list allowed_cpus() {
    // The kernel refuses a mask that is smaller than its own: double the size until it fits.
    for (std::size_t cpus = 1024; cpus <= (1U << 20U); cpus *= 2) {
        std::vector<cpu_set_t> mask(cpus / 1024);
        std::size_t const size_bytes = mask.size() * sizeof(cpu_set_t);
        if (sched_getaffinity(0, size_bytes, mask.data()) == 0) {
            cpu_list allowed;
            for (std::size_t cpu = 0; cpu < cpus; ++cpu) {
                if (CPU_ISSET_S(cpu, size_bytes, mask.data())) {
                    allowed.push_back(static_cast<int>(cpu));
                }
            }
            return allowed;
        }
    }
    return {};
}

std::vector<cpu_list> group_by_core(const cpu_list &allowed, const siblings_reader &siblings) {
    std::vector<cpu_list> cores;
    cpu_list placed;
    for (int const cpu : allowed) {
        if (std::ranges::find(placed, cpu) != placed.end()) {
            continue;
        }
        cpu_list core{cpu};
        for (int const sibling : parse_cpu_list(siblings(cpu))) {
            if (sibling != cpu && std::ranges::binary_search(allowed, sibling)) {
                core.push_back(sibling);
            }
        }
        std::ranges::sort(core);
        placed.insert(placed.end(), core.begin(), core.end());
        cores.push_back(std::move(core));
    }
    return cores;
}

cpu_list parse_cpu_list(const std::string &text) {
    cpu_list cpus;
    std::string_view rest = text;
    while (!rest.empty()) {
        auto const comma = rest.find(',');
        std::string_view const part = rest.substr(0, comma);
        rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
        int first = 0;
        auto parsed = std::from_chars(part.begin(), part.end(), first);
        if (parsed.ec != std::errc()) {
            continue;
        }
        int last = first;
        if (parsed.ptr != part.end() && *parsed.ptr == '-') {
            parsed = std::from_chars(parsed.ptr + 1, part.end(), last);
        }
        for (int cpu = first; parsed.ec == std::errc() && cpu <= last; ++cpu) {
            cpus.push_back(cpu);
        }
    }
    return cpus;
}

std::string format_cpu_list(const cpu_list &cpus) {
    std::string text;
    for (std::size_t i = 0; i < cpus.size();) {
        std::size_t end = i + 1;
        while (end < cpus.size() && cpus[end] == cpus[end - 1] + 1) {
            ++end;
        }
        text += fmt::format("{}{}", text.empty() ? "" : ",", cpus[i]);
        if (end - i > 1) {
            text += fmt::format("-{}", cpus[end - 1]);
        }
        i = end;
    }
    return text;
}

result<std::vector<cpu_list>> assign_cores(int ranks, binding wanted,
                                           const std::vector<cpu_list> &cores) {
    auto const count = static_cast<std::size_t>(ranks);
    std::vector<cpu_list> placement(count);
    if (wanted == binding::core && cores.size() < count) {
        return error(OMPX_ERR_ARG,
                     fmt::format("--bind-to core: {} ranks, but {} cores may be used here", ranks,
                                 cores.size()),
                     "use fewer ranks or --bind-to none");
    }
    if (wanted == binding::none || cores.size() < count) {
        return placement;
    }
    for (std::size_t rank = 0; rank < count; ++rank) {
        std::size_t const end = (rank + 1) * cores.size() / count;
        for (std::size_t core = rank * cores.size() / count; core < end; ++core) {
            placement[rank].insert(placement[rank].end(), cores[core].begin(), cores[core].end());
        }
        std::ranges::sort(placement[rank]);
    }
    return placement;
}

} // namespace diomp::run
