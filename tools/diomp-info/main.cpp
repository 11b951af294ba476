// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// diomp-info: shows the installation, the machine and the settings.
#include "base/command_line.h"
#include "base/tool_main.h"
#include "bug_report.h"
#include "build_info.h"
#include "doctor.h"
#include "report.h"
#include "settings_page.h"
#include "topology.h"
#include "tuning_page.h"

#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>

namespace {

int run(int argc, char **argv) {
    CLI::App app("Shows DiOMP's version, what was built in, the machine, ranks and "
                 "segments. Run it under diomp-run to see a job's ranks.",
                 "diomp-info");
    bool as_json = false;
    bool doctor = false;
    bool build = false;
    bool settings = false;
    bool markdown = false;
    bool topology = false;
    bool coll_tuning = false;
    bool probe = false;
    diomp::info::topology_options shape;
    diomp::info::doctor_options options;
    diomp::info::bug_report_options report;
    app.set_version_flag("--version", "diomp-info (DiOMP) " DIOMP_VERSION);
    app.add_flag("--json", as_json, "Print JSON");
    auto *doctor_flag = app.add_flag(
        "--doctor", doctor, "Check the requirements of a job; status 1 if a job cannot run");
    app.add_option("--ranks", options.ranks, "Ranks per node that --doctor assumes")
        ->check(CLI::Range(1, 4096))
        ->needs(doctor_flag)
        ->capture_default_str();
    auto *topology_flag =
        app.add_flag("--topology", topology,
                     "Show the node, its devices, the transfer paths between them, and with -n "
                     "which rank would drive which device")
            ->excludes(doctor_flag);
    app.add_option("-n,--np", shape.ranks, "Ranks of this node that --topology assumes")
        ->check(CLI::Range(1, 4096))
        ->needs(topology_flag);
    app.add_option("--devices-per-rank", shape.devices_per_rank,
                   "Devices that each rank drives. Default: DIOMP_DEVICES_PER_RANK, or 1")
        ->check(CLI::Range(1, 1024))
        ->needs(topology_flag);
    app.add_flag("--build", build, "Print only what was built in")->excludes(doctor_flag);
    auto *settings_flag =
        app.add_flag("--settings", settings, "Print all settings with value, default and meaning");
    settings_flag->excludes(doctor_flag);
    app.add_flag("--settings-markdown", markdown, "Print docs/settings.md")->excludes(doctor_flag);
    app.add_flag("--coll-tuning", coll_tuning,
                 "Print the rules of DIOMP_COLL_TUNING, and the algorithms that rules can name")
        ->excludes(doctor_flag);
    auto *bug_report_flag =
        app.add_option("--bug-report", report.file,
                       "Write versions, settings, topology, checks and errors without secrets to "
                       "FILE (- for standard output; by default diomp-bug-report.txt)")
            ->option_text("[FILE]")
            ->expected(0, 1)
            ->default_str("diomp-bug-report.txt")
            ->excludes(doctor_flag)
            ->excludes(topology_flag);
    app.add_option("--errors", report.errors,
                   "The output of the failed job for --bug-report (- for standard input)")
        ->option_text("FILE")
        ->needs(bug_report_flag);
    // Internal: --doctor starts this program with it as the ranks of a small job.
    app.add_flag("--probe-rank", probe)->group("");
    if (auto const status = diomp::parse_command_line(app, EXIT_FAILURE, argc, argv)) {
        return *status;
    }

    if (probe) {
        return diomp::info::run_probe_rank();
    }
    if (bug_report_flag->count() > 0) {
        if (report.file.empty()) {
            report.file = bug_report_flag->get_default_str();
        }
        return diomp::info::write_bug_report(report);
    }
    if (build) {
        return diomp::info::print_build(as_json);
    }
    if (settings) {
        return diomp::info::print_settings(as_json);
    }
    if (markdown) {
        fmt::print("{}", diomp::info::settings_markdown());
        return 0;
    }
    if (coll_tuning) {
        return diomp::info::print_tuning();
    }
    if (doctor) {
        options.as_json = as_json;
        return diomp::info::run_doctor(options);
    }
    if (topology) {
        shape.as_json = as_json;
        return diomp::info::print_topology(shape);
    }
    return diomp::info::print_report(as_json);
}

} // namespace

int main(int argc, char **argv) {
    return diomp::run_tool("diomp-info", [argc, argv] { return run(argc, argv); });
}
