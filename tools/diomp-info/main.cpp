// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// diomp-info: what this installation is, what it finds here, what it can be told.
#include "doctor.h"
#include "report.h"
#include "settings_page.h"

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include <cstdio>

int main(int argc, char **argv) {
    CLI::App app("Shows DiOMP's version, ranks, segments, limits and settings. Run it under "
                 "diomp-run to see a "
                 "job's ranks.");
    bool as_json = false;
    bool doctor = false;
    bool settings = false;
    bool markdown = false;
    bool probe = false;
    diomp::info::doctor_options options;
    app.set_version_flag("--version", "diomp-info (DiOMP) " DIOMP_VERSION);
    app.add_flag("--json", as_json, "Print JSON");
    auto *doctor_flag = app.add_flag("--doctor", doctor,
                                     "Check what a job needs here; status 1 if one could not run");
    app.add_option("--ranks", options.ranks, "Ranks per node that --doctor should think of")
        ->check(CLI::Range(1, 4096))
        ->needs(doctor_flag)
        ->capture_default_str();
    auto *settings_flag = app.add_flag("--settings", settings, "Print only the settings");
    settings_flag->excludes(doctor_flag);
    app.add_flag("--settings-markdown", markdown, "Print docs/settings.md")->excludes(doctor_flag);
    // Not for people: --doctor starts itself so, as the ranks of a small job.
    app.add_flag("--probe-rank", probe)->group("");
    CLI11_PARSE(app, argc, argv);

    if (probe) {
        return diomp::info::run_probe_rank();
    }
    if (settings) {
        return diomp::info::print_settings(as_json);
    }
    if (markdown) {
        fmt::print("{}", diomp::info::settings_markdown());
        return 0;
    }
    if (doctor) {
        options.as_json = as_json;
        return diomp::info::run_doctor(options);
    }
    return diomp::info::print_report(as_json);
}
