// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuning_page.h"

#include "base/sizes.h"
#include "coll/tuning.h"
#include "settings_page.h"

#include <fmt/core.h>

#include <cstdint>
#include <cstdio>

namespace diomp::info {
namespace {

std::string algorithm_line(const coll::algorithm_row &row) {
    std::string limits;
    auto const add = [&limits](const std::string &text) {
        limits += (limits.empty() ? "" : "; ") + text;
    };
    if (row.max_bytes != SIZE_MAX) {
        add("up to " + format_size(row.max_bytes));
    }
    if (row.min_chunk_bytes != 0) {
        add(fmt::format("chunk {} to {}", format_size(row.min_chunk_bytes),
                        format_size(row.max_chunk_bytes)));
    }
    if (*row.condition != '\0') {
        add(row.condition);
    }
    return fmt::format("  {:<14} {:<5} {:<24} {}", coll::short_name_of(row.what),
                       name_of(row.level), name_of(row.method), limits);
}

int fail(const error &why) {
    fmt::print(stderr, "diomp-info: {}\n  {}\n", why.message(), why.remedy());
    return 1;
}

} // namespace

result<std::string> rules_text(const std::string &file) {
    if (file.empty()) {
        return std::string("rules of collectives: none (DIOMP_COLL_TUNING is not set)\n");
    }
    auto rules = coll::tuning_rules::read(file);
    DIOMP_TRY(rules);
    std::string text =
        fmt::format("rules of collectives from {}, the first match decides:\n", file);
    for (coll::tuning_rule const &rule : rules.value().rules()) {
        text += "  " + to_text(rule) + "\n";
    }
    return text;
}

int print_tuning() {
    auto const here = read_environment();
    if (!here) {
        return fail(here.failure());
    }
    auto const rules = rules_text(here.value().values.coll.tuning_file);
    if (!rules) {
        return fail(rules.failure());
    }
    fmt::print("{}\nalgorithms (collective, level, name, limits):\n", rules.value());
    for (coll::algorithm_row const &row : coll::algorithm_rows()) {
        std::string line = algorithm_line(row);
        line.erase(line.find_last_not_of(' ') + 1);
        fmt::print("{}\n", line);
    }
    return 0;
}

} // namespace diomp::info
