// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "doctor.h"

#include "settings_page.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace diomp::info {
namespace {

const char *severity_name(severity level) {
    switch (level) {
    case severity::fine:
        return "ok";
    case severity::note:
        return "note";
    case severity::bad:
        return "BAD";
    }
    return "?";
}

std::vector<finding> examine_environment(const result<environment> &here) {
    if (!here) {
        return {{"settings", severity::bad, here.failure().message(), here.failure().remedy()}};
    }
    std::vector<finding> findings;
    for (std::string const &name : here.value().unknown) {
        findings.push_back({"settings", severity::note,
                            fmt::format("{} is set, but is not a setting", name),
                            "look for a misspelling: diomp-info lists all settings"});
    }
    if (findings.empty()) {
        findings.push_back({"settings", severity::fine, "all DIOMP_ variables are understood", ""});
    }
    return findings;
}

void print_text(const std::vector<finding> &findings) {
    for (finding const &each : findings) {
        fmt::print("{:<5} {:<18} {}\n", severity_name(each.level), each.what, each.detail);
        if (each.level != severity::fine && !each.remedy.empty()) {
            fmt::print("{:24} -> {}\n", "", each.remedy);
        }
    }
}

void print_json(const std::vector<finding> &findings) {
    nlohmann::json list = nlohmann::json::array();
    for (finding const &each : findings) {
        list.push_back({{"check", each.what},
                        {"verdict", severity_name(each.level)},
                        {"detail", each.detail},
                        {"remedy", each.remedy}});
    }
    fmt::print("{}\n", list.dump(2));
}

} // namespace

int run_doctor(const doctor_options &options) {
    auto const here = read_environment();
    settings const values = here ? here.value().values : settings{};
    std::vector<finding> findings = examine_environment(here);
    for (auto const &part :
         {examine_system(values, inspect_machine(), options.ranks), examine_installation()}) {
        findings.insert(findings.end(), part.begin(), part.end());
    }
    auto const count = [&](severity wanted) {
        return std::count_if(findings.begin(), findings.end(),
                             [&](const finding &each) { return each.level == wanted; });
    };
    if (options.as_json) {
        print_json(findings);
    } else {
        print_text(findings);
        if (count(severity::bad) > 0) {
            fmt::print("\nA job cannot run here: {} of {} checks failed.\n", count(severity::bad),
                       findings.size());
        } else {
            fmt::print("\nA job can run here ({} checks, {} notes).\n", findings.size(),
                       count(severity::note));
        }
    }
    return count(severity::bad) > 0 ? 1 : 0;
}

} // namespace diomp::info
