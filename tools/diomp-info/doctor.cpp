// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "doctor.h"

#include "settings_page.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace diomp::info {
namespace {

const char *word(verdict is) {
    switch (is) {
    case verdict::fine:
        return "ok";
    case verdict::note:
        return "note";
    case verdict::bad:
        return "BAD";
    }
    return "?";
}

std::vector<finding> examine_environment(const result<environment> &here) {
    if (!here) {
        return {{"settings", verdict::bad, here.failure().message(), here.failure().remedy()}};
    }
    std::vector<finding> findings;
    for (std::string const &name : here.value().unknown) {
        findings.push_back({"settings", verdict::note,
                            fmt::format("{} is set, but is no setting", name),
                            "look for a misspelling: diomp-info lists all settings"});
    }
    if (findings.empty()) {
        findings.push_back({"settings", verdict::fine, "all DIOMP_ variables are understood", ""});
    }
    return findings;
}

void print_text(const std::vector<finding> &findings) {
    for (finding const &each : findings) {
        fmt::print("{:<5} {:<18} {}\n", word(each.is), each.what, each.detail);
        if (each.is != verdict::fine && !each.remedy.empty()) {
            fmt::print("{:24} -> {}\n", "", each.remedy);
        }
    }
}

void print_json(const std::vector<finding> &findings) {
    nlohmann::json list = nlohmann::json::array();
    for (finding const &each : findings) {
        list.push_back({{"check", each.what},
                        {"verdict", word(each.is)},
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
         {examine_system(values, look_at_machine(), options.ranks), examine_installation()}) {
        findings.insert(findings.end(), part.begin(), part.end());
    }
    auto const count = [&](verdict wanted) {
        return std::count_if(findings.begin(), findings.end(),
                             [&](const finding &each) { return each.is == wanted; });
    };
    if (options.as_json) {
        print_json(findings);
    } else {
        print_text(findings);
        if (count(verdict::bad) > 0) {
            fmt::print("\nA job cannot run here: {} of {} checks failed.\n", count(verdict::bad),
                       findings.size());
        } else {
            fmt::print("\nA job can run here ({} checks, {} notes).\n", findings.size(),
                       count(verdict::note));
        }
    }
    return count(verdict::bad) > 0 ? 1 : 0;
}

} // namespace diomp::info
