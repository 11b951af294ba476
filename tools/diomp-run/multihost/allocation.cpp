// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "allocation.h"

#include "base/read_file.h"
#include "core/program.h"
#include "listener.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace diomp::run {
namespace {

constexpr std::size_t max_hosts = 100000;
constexpr int max_slots = 100000;
constexpr std::size_t max_node_file_bytes = std::size_t{64} << 20;
/// Larger numbers of steps are Slurm's own: the batch script, an interactive shell.
constexpr long first_special_step = 0xfffffff0L;

std::string_view variable(const char *name) {
    const char *const value = std::getenv(name);
    return value != nullptr ? value : "";
}

template <typename Number>
bool parse_number(std::string_view text, Number &number) {
    auto const parsed = std::from_chars(text.begin(), text.end(), number);
    return parsed.ec == std::errc() && parsed.ptr == text.end();
}

error malformed(std::string_view list) {
    return error(OMPX_ERR_ARG, fmt::format("'{}' is not a list as Slurm writes it", list));
}

/// Removes the part before the first comma outside of brackets from `list`, and returns it.
std::string_view take_part(std::string_view &list) {
    int depth = 0;
    std::size_t end = 0;
    for (; end < list.size() && (list[end] != ',' || depth > 0); ++end) {
        depth += list[end] == '[' ? 1 : list[end] == ']' ? -1 : 0;
    }
    auto const part = list.substr(0, end);
    list.remove_prefix(std::min(end + 1, list.size()));
    return part;
}

/// Adds prefix + name for each name that `part`, without commas outside of brackets, stands for.
bool expand_part(const std::string &prefix, std::string_view part, std::vector<std::string> &into) {
    auto const open = part.find('[');
    auto const close = part.find(']');
    if (open == part.npos && close == part.npos) {
        into.push_back(prefix + std::string(part));
        return is_host_name(into.back()) && into.size() <= max_hosts;
    }
    if (open == part.npos || close == part.npos || close < open) {
        return false;
    }
    std::string const start = prefix + std::string(part.substr(0, open));
    for (auto ranges = part.substr(open + 1, close - open - 1); !ranges.empty();) {
        auto const range = take_part(ranges);
        auto const dash = range.find('-');
        auto const first_text = range.substr(0, dash);
        unsigned long first = 0;
        unsigned long last = 0;
        if (!parse_number(first_text, first) ||
            !parse_number(dash == range.npos ? first_text : range.substr(dash + 1), last) ||
            last < first || last - first >= max_hosts) {
            return false;
        }
        for (auto number = first; number <= last; ++number) {
            if (!expand_part(fmt::format("{}{:0{}}", start, number, first_text.size()),
                             part.substr(close + 1), into)) {
                return false;
            }
        }
    }
    return !into.empty();
}

/// The command of docs/launch.md. srun takes a program, not a command line, hence the inner sh.
std::string slurm_shell() {
    if (find_program("srun", std::string(variable("PATH"))).exit_status != 0) {
        return {};
    }
    std::string processors;
    if (auto const counts = expand_slurm_counts(variable("SLURM_JOB_CPUS_PER_NODE"))) {
        // One command for all hosts, so the smallest decides.
        processors = fmt::format(" --cpus-per-task={}", std::ranges::min(counts.value()));
    }
    return fmt::format("sh -c 'exec srun --nodes=1 --ntasks=1{} --overlap --mpi=none "
                       "--cpu-bind=none --nodelist=$0 sh -c \"$1\"'",
                       processors);
}

/// Returns whether srun has started this process, which then has the hosts of its step only.
bool inside_slurm_step() {
    long step = 0;
    return parse_number(variable("SLURM_STEP_ID"), step) && step < first_special_step &&
           !variable("SLURM_STEP_NODELIST").empty();
}

result<std::optional<allocation>> slurm_allocation(const char *hosts_variable,
                                                   const char *slots_variable) {
    auto const hosts = expand_slurm_hosts(variable(hosts_variable));
    if (!hosts) {
        return error(OMPX_ERR_ARG, fmt::format("{}: {}", hosts_variable, hosts.failure().message()),
                     "name the hosts with --hosts");
    }
    auto const slots = expand_slurm_counts(variable(slots_variable));
    if (!slots || slots.value().size() != hosts.value().size()) {
        return error(OMPX_ERR_ARG,
                     fmt::format("{}={} does not give the tasks of the {} hosts of {}",
                                 slots_variable, variable(slots_variable), hosts.value().size(),
                                 hosts_variable),
                     "name the hosts with --hosts");
    }
    allocation found{{}, slurm_shell()};
    for (std::size_t i = 0; i < hosts.value().size(); ++i) {
        found.hosts.push_back({hosts.value()[i], slots.value()[i]});
    }
    return std::optional(std::move(found));
}

result<std::optional<allocation>> pbs_allocation(const std::string &path) {
    auto const content = read_file(path, max_node_file_bytes);
    if (!content) {
        return error(OMPX_ERR_ARG, fmt::format("PBS_NODEFILE: {}", content.failure().message()),
                     "name the hosts with --hosts");
    }
    auto hosts = parse_host_file(content.value(), path);
    DIOMP_TRY(hosts);
    allocation found{hosts.take(), {}};
    for (host_slots &host : found.hosts) {
        host.slots = std::max(host.slots, 1); // named once
    }
    return std::optional(std::move(found));
}

} // namespace

result<std::vector<std::string>> expand_slurm_hosts(std::string_view list) {
    std::vector<std::string> names;
    auto rest = list;
    if (list.ends_with(',')) {
        return malformed(list);
    }
    do {
        if (!expand_part("", take_part(rest), names)) {
            return malformed(list);
        }
    } while (!rest.empty());
    return names;
}

result<std::vector<int>> expand_slurm_counts(std::string_view list) {
    std::vector<int> counts;
    auto rest = list;
    if (list.ends_with(',')) {
        return malformed(list);
    }
    do {
        auto part = take_part(rest);
        std::size_t times = 1;
        if (auto const repeat = part.find("(x"); repeat != part.npos && part.ends_with(')')) {
            auto const number = part.substr(repeat + 2, part.size() - repeat - 3);
            times = parse_number(number, times) ? times : 0;
            part = part.substr(0, repeat);
        }
        int count = 0;
        if (!parse_number(part, count) || count < 1 || count > max_slots || times < 1 ||
            times > max_hosts) {
            return malformed(list);
        }
        counts.insert(counts.end(), times, count);
    } while (!rest.empty());
    return counts;
}

result<std::optional<allocation>> find_allocation() {
    if (inside_slurm_step()) {
        return slurm_allocation("SLURM_STEP_NODELIST", "SLURM_STEP_TASKS_PER_NODE");
    }
    if (!variable("SLURM_JOB_NODELIST").empty()) {
        return slurm_allocation("SLURM_JOB_NODELIST", "SLURM_TASKS_PER_NODE");
    }
    if (auto const path = variable("PBS_NODEFILE"); !path.empty()) {
        return pbs_allocation(std::string(path));
    }
    return std::optional<allocation>();
}

bool is_only_here(const allocation &given) {
    const std::string &name = given.hosts.front().name;
    return given.hosts.size() == 1 && (name == variable("SLURMD_NODENAME") || is_local_name(name) ||
                                       is_local_name(name.substr(0, name.find('.'))));
}

} // namespace diomp::run
