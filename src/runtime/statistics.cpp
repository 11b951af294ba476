// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/internal/statistics.h"

#include "stacks/call_sites.h"
#include "stacks/symbols.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

namespace diomp::runtime {

statistics::statistics(stats_mode mode)
    : mode_(mode),
      sites_(mode == stats_mode::callsites ? std::make_unique<stacks::call_site_finder>()
                                           : nullptr) {}

statistics::~statistics() = default;

void statistics::record(const char *function, const char *path, std::size_t nbytes,
                        std::chrono::nanoseconds time, const void *site) {
    auto const nanoseconds = static_cast<std::uint64_t>(time.count());
    std::lock_guard const guard(mutex_);
    const void *const call_site =
        sites_ != nullptr && site != nullptr ? sites_->in_program(site) : nullptr;
    totals &entry = totals_[{function, path, call_site}];
    ++entry.calls;
    entry.nbytes += nbytes;
    entry.nanoseconds += nanoseconds;
    entry.longest_ns = std::max(entry.longest_ns, nanoseconds);
}

void statistics::record_all(const char *function, const char *path, std::uint64_t calls,
                            std::size_t nbytes, std::chrono::nanoseconds total,
                            std::chrono::nanoseconds longest) {
    std::lock_guard const guard(mutex_);
    totals &entry = totals_[{function, path, nullptr}];
    entry.calls += calls;
    entry.nbytes += nbytes;
    entry.nanoseconds += static_cast<std::uint64_t>(total.count());
    entry.longest_ns = std::max(entry.longest_ns, static_cast<std::uint64_t>(longest.count()));
}

std::map<const void *, std::string>
statistics::describe_sites(const std::vector<std::pair<key, totals>> &rows) {
    stacks::symbols names;
    std::map<const void *, std::string> made;
    std::vector<std::pair<const void *, stacks::symbols::code_address>> addresses;
    for (auto const &[which, sum] : rows) {
        if (which.site == nullptr || made.contains(which.site)) {
            continue;
        }
        // An address inside the call instruction; the return address may be on the next line.
        auto const call = reinterpret_cast<std::uintptr_t>(which.site) - 1;
        made[which.site] = names.describe(call);
        if (auto const where = names.locate(call)) {
            addresses.emplace_back(which.site, *where);
        }
    }
    std::vector<stacks::symbols::code_address> wanted;
    wanted.reserve(addresses.size());
    for (auto const &[site, where] : addresses) {
        wanted.push_back(where);
    }
    stacks::source_lines const lines(wanted);
    for (auto const &[site, where] : addresses) {
        if (std::string const line = lines.line_of(where); !line.empty()) {
            made[site] += " " + line;
        }
    }
    return made;
}

std::string statistics::table(const std::string &heading,
                              std::initializer_list<extra> extras) const {
    std::lock_guard const guard(mutex_);
    std::string text = heading + "\n";
    text += fmt::format("  {:<26} {:<20} {:>10} {:>14} {:>12} {:>12} {:>12}\n", "call", "path",
                        "calls", "bytes", "total ms", "mean us", "longest us");
    std::vector<std::pair<key, totals>> rows(totals_.begin(), totals_.end());
    std::sort(rows.begin(), rows.end(), [](const auto &a, const auto &b) {
        return a.second.nanoseconds > b.second.nanoseconds;
    });
    auto const sites = mode_ == stats_mode::callsites ? describe_sites(rows)
                                                      : std::map<const void *, std::string>();
    for (auto const &[which, sum] : rows) {
        text += fmt::format("  {:<26} {:<20} {:>10} {:>14} {:>12.3f} {:>12.3f} {:>12.3f}\n",
                            which.function, which.path, sum.calls, sum.nbytes,
                            static_cast<double>(sum.nanoseconds) * 1e-6,
                            static_cast<double>(sum.nanoseconds) * 1e-3 /
                                static_cast<double>(std::max<std::uint64_t>(sum.calls, 1)),
                            static_cast<double>(sum.longest_ns) * 1e-3);
        if (auto const at = sites.find(which.site); at != sites.end()) {
            text += fmt::format("    at {}\n", at->second);
        }
    }
    for (extra const &counter : extras) {
        text += fmt::format("  {}: {}\n", counter.name, counter.value);
    }
    return text;
}

} // namespace diomp::runtime
