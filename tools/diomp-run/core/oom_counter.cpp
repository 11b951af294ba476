// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "oom_counter.h"

#include "base/read_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <sstream>
#include <string_view>
#include <vector>

namespace diomp::run {
namespace {

/// Larger than any memory: version 1 expresses "no limit" by such a number.
constexpr std::uint64_t no_limit = std::uint64_t{1} << 60;

std::string content_of(const std::string &path) {
    auto read = read_file(path);
    return read ? read.take() : std::string();
}

void for_each_line(const std::string &text, const std::function<void(std::string_view)> &use) {
    std::string_view rest = text;
    while (!rest.empty()) {
        auto const end = rest.find('\n');
        use(rest.substr(0, end));
        rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    }
}

std::optional<std::uint64_t> parse_number(std::string_view text) {
    std::uint64_t value = 0;
    auto const parsed = std::from_chars(text.begin(), text.end(), value);
    return parsed.ec == std::errc() ? std::optional(value) : std::nullopt;
}

/// Returns whether `word` is in a comma-separated list.
bool list_contains(std::string_view words, std::string_view word) {
    while (!words.empty()) {
        auto const comma = words.find(',');
        if (words.substr(0, comma) == word) {
            return true;
        }
        words.remove_prefix(comma == std::string_view::npos ? words.size() : comma + 1);
    }
    return false;
}

/// Finds the memory cgroup in /proc/self/cgroup: "0::GROUP" (version 2), "N:memory:GROUP" (version
/// 1).
std::optional<std::string> find_group(const std::string &groups, bool version_2) {
    std::optional<std::string> found;
    for_each_line(groups, [&](std::string_view line) {
        auto const first = line.find(':');
        auto const second = first == std::string_view::npos ? first : line.find(':', first + 1);
        if (second == std::string_view::npos) {
            return;
        }
        std::string_view const controllers = line.substr(first + 1, second - first - 1);
        if (version_2 ? controllers.empty() : list_contains(controllers, "memory")) {
            found = line.substr(second + 1);
        }
    });
    return found;
}

} // namespace

/// Finds the hierarchy's mount in /proc/self/mountinfo (proc_pid_mountinfo(5)), with lines such as
/// "36 35 98:0 ROOT POINT options optional-fields... - TYPE source super-options".
std::optional<oom_counter::mount> oom_counter::find_mount(const std::string &table,
                                                          bool version_2) {
    std::optional<mount> found;
    for_each_line(table, [&](std::string_view line) {
        std::istringstream words{std::string(line)};
        std::vector<std::string> fields;
        for (std::string word; words >> word;) {
            fields.push_back(std::move(word));
        }
        auto const dash = std::ranges::find(fields, "-");
        if (fields.size() < 6 || fields.end() - dash < 4) {
            return;
        }
        bool const fits = version_2 ? dash[1] == "cgroup2"
                                    : dash[1] == "cgroup" && list_contains(dash[3], "memory");
        if (fits && !found) {
            found = mount{fields[4], fields[3]};
        }
    });
    return found;
}

oom_counter oom_counter::of_this_process(const std::string &root) {
    std::string const groups = content_of(root + "/proc/self/cgroup");
    std::string const mounts = content_of(root + "/proc/self/mountinfo");
    for (bool const version_2 : {true, false}) {
        auto const group = find_group(groups, version_2);
        auto const where = find_mount(mounts, version_2);
        if (!group || !where) {
            continue;
        }
        oom_counter found;
        found.group_ = *group;
        found.top_ = root + where->point;
        // In a container only a part of the hierarchy may be mounted. A group outside of that part
        // appears as /../...; then the mounted part is the closest.
        std::string_view below = *group;
        if (where->group != "/" && below.starts_with(where->group)) {
            below.remove_prefix(where->group.size());
        }
        bool const is_inside = below != "/" && below.find("/..") == std::string_view::npos;
        found.folder_ = is_inside ? found.top_ + std::string(below) : found.top_;
        found.events_ = found.folder_ + (version_2 ? "/memory.events" : "/memory.oom_control");
        found.limit_ = version_2 ? "/memory.max" : "/memory.limit_in_bytes";
        if (auto const kills = found.kills()) {
            found.kills_before_ = *kills;
            return found;
        }
    }
    oom_counter machine;
    machine.events_ = root + "/proc/vmstat";
    machine.kills_before_ = machine.kills().value_or(0);
    return machine;
}

std::optional<std::uint64_t> oom_counter::kills() const {
    std::optional<std::uint64_t> found;
    for_each_line(content_of(events_), [&found](std::string_view line) {
        constexpr std::string_view key = "oom_kill ";
        if (line.starts_with(key)) {
            found = parse_number(line.substr(key.size()));
        }
    });
    return found;
}

std::optional<std::uint64_t> oom_counter::lowest_limit() const {
    std::uint64_t lowest = no_limit;
    for (std::string folder = folder_; folder.size() >= top_.size();) {
        lowest = std::min(lowest, parse_number(content_of(folder + limit_)).value_or(no_limit));
        auto const slash = folder.rfind('/');
        folder.resize(slash == std::string::npos ? 0 : slash);
    }
    return lowest < no_limit ? std::optional(lowest) : std::nullopt;
}

std::string oom_counter::explain_kill() const {
    if (kills().value_or(0) <= kills_before_) {
        return {};
    }
    return fmt::format("out of memory, the kernel's OOM killer has ended it; it is the memory of "
                       "{}; use fewer ranks per node or less memory per rank, or raise the limit",
                       describe_scope());
}

std::string oom_counter::describe_scope() const {
    if (folder_.empty()) {
        return "this machine";
    }
    auto const limit = lowest_limit();
    if (!limit) {
        return "this machine or of the cgroup " + group_;
    }
    constexpr double mib = 1024.0 * 1024.0;
    return fmt::format("the cgroup {}, which may use {:.1f} MiB", group_,
                       static_cast<double>(*limit) / mib);
}

} // namespace diomp::run
