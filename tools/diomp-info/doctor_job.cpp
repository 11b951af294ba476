// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Checks the installation and runs a small job. Checks that could end the process are made in
// another process.
#include "base/run_program.h"
#include "doctor.h"
#include "runtime_library.h"

#include <fmt/core.h>

#include <cstdlib>
#include <dlfcn.h>
#include <sstream>

namespace diomp::info {
namespace {

/// Output and errors of a program are read alike.
program_result run(std::vector<std::string> words) {
    return run_program(std::move(words), errors_to::output);
}

std::string first_line(const std::string &text) { return text.substr(0, text.find('\n')); }

/// Returns the last line: the runtime's warnings come before the program's own output.
std::string last_line(std::string text) {
    while (text.ends_with('\n')) {
        text.pop_back();
    }
    return text.substr(text.rfind('\n') + 1);
}

/// Code for DPUs can run here only under an emulator; jobs need none.
finding check_emulator() {
    auto const version_run = run({"qemu-aarch64-static", "--version"});
    return {"emulator", severity::fine,
            version_run.exit_status == 0
                ? fmt::format("{}: runs code for DPUs (64-bit Arm)", first_line(version_run.output))
                : "none (qemu-user-static): needed only to run code for DPUs here",
            ""};
}

finding check_launcher() {
    std::string const path = program_beside("diomp-run");
    auto const version_run = run({path, "--version"});
    if (version_run.exit_status != 0) {
        return {"launcher", severity::bad,
                fmt::format("{}: {}", path, first_line(version_run.output)),
                "put the bin directory of the installation on PATH"};
    }
    std::istringstream words(version_run.output);
    std::string version;
    for (std::string word; words >> word;) {
        version = word;
    }
    if (version != DIOMP_VERSION) {
        return {"launcher", severity::bad,
                fmt::format("{} is version {}, diomp-info {}", path, version, DIOMP_VERSION),
                "two installations are mixed; check PATH"};
    }
    return {"launcher", severity::fine, fmt::format("{} {}", path, version), ""};
}

/// Starts this program as a job of one rank, which opens the library and prints its path and
/// version, or an error.
finding library() {
    if (inside_job()) {
        return {"library", severity::fine, "not tested inside a job", ""};
    }
    auto const probe = run({own_program().string(), "--probe-rank"});
    std::string const text = last_line(probe.output);
    if (probe.exit_status != 0) {
        return {"library", severity::bad, text.empty() ? "the runtime does not start" : text,
                "the message above names the reason"};
    }
    std::string const version = text.substr(text.rfind(' ') + 1);
    if (version != DIOMP_VERSION) {
        return {"library", severity::bad,
                fmt::format("{}, but diomp-info is {}", text, DIOMP_VERSION),
                "two installations are mixed; check LD_LIBRARY_PATH"};
    }
    return {"library", severity::fine, text, ""};
}

finding check_job() {
    if (inside_job()) {
        return {"job", severity::fine, "running in one now", ""};
    }
    auto const job = run({program_beside("diomp-run"), "-n", "2", "--timeout", "30", "--",
                          own_program().string(), "--probe-rank"});
    if (job.exit_status != 0) {
        return {"job", severity::bad,
                fmt::format("two ranks do not run: {}", first_line(job.output)),
                "see the other findings; DIOMP_LOG=debug prints more"};
    }
    return {"job", severity::fine, "two ranks start, pass a barrier and end", ""};
}

finding check_openmp() {
    for (const char *name : {"libomp.so.5", "libomp.so", "libgomp.so.1"}) {
        if (void *handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL); handle != nullptr) {
            return {"OpenMP", severity::fine, fmt::format("{} is found", name), ""};
        }
    }
    return {"OpenMP", severity::note, "neither libomp nor libgomp is found by the dynamic linker",
            "install libomp5-19; programs built by diompcc may have its path built in"};
}

finding check_compiler() {
    auto const wrapper = own_program().parent_path() / "diompcc";
    auto const version_run = run({wrapper.string(), "--version"});
    if (version_run.exit_status != 0) {
        return {"compiler", severity::note,
                fmt::format("diompcc: {}", first_line(version_run.output)),
                "needed only where programs are compiled: install clang-19 or set DIOMP_CC"};
    }
    std::string const rest = version_run.output.substr(
        std::min(version_run.output.find('\n') + 1, version_run.output.size()));
    return {"compiler", severity::fine, fmt::format("diompcc runs {}", first_line(rest)), ""};
}

} // namespace

std::vector<finding> examine_installation() {
    return {library(),        check_launcher(), check_openmp(),
            check_compiler(), check_emulator(), check_job()};
}

int run_probe_rank() {
    auto library = open_runtime();
    if (!library) {
        fmt::print(stderr, "{}\n", library.failure().message());
        return 1;
    }
    runtime_library const &runtime = library.value();
    if (runtime.init() != OMPX_SUCCESS || runtime.barrier(ompx_group_world) != OMPX_SUCCESS) {
        return 1;
    }
    if (runtime.rank() == 0) {
        fmt::print("{} {}\n", runtime.path, runtime.version);
        std::fflush(stdout);
    }
    return runtime.finalize() == OMPX_SUCCESS ? 0 : 1;
}

} // namespace diomp::info
