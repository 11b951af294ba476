// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Checks the installation and runs a small job. Checks that could end the process are made in
// another process.
#include "base/unique_fd.h"
#include "doctor.h"
#include "runtime_library.h"

#include <fmt/core.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <spawn.h>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

namespace diomp::info {
namespace {

struct command_result {
    int exit_status = -1; ///< 128 + n if signal n ended it
    std::string output;   ///< standard output and standard error
};

/// Runs a program without input and waits for its end.
command_result run(const std::vector<std::string> &words) {
    command_result done;
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) {
        done.output = std::strerror(errno);
        return done;
    }
    unique_fd const read_end(ends[0]);
    unique_fd write_end(ends[1]);
    std::vector<char *> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string const &word : words) {
        arguments.push_back(const_cast<char *>(word.c_str()));
    }
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDERR_FILENO);
    pid_t child = -1;
    int const code =
        posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    write_end = unique_fd();
    if (code != 0) {
        done.output = fmt::format("{}: {}", words[0], std::strerror(code));
        return done;
    }
    std::array<char, 4096> buffer{};
    for (ssize_t bytes = 0; (bytes = read(read_end.get(), buffer.data(), buffer.size())) > 0;) {
        done.output.append(buffer.data(), static_cast<std::size_t>(bytes));
    }
    int status = 0;
    waitpid(child, &status, 0);
    done.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return done;
}

std::string first_line(const std::string &text) { return text.substr(0, text.find('\n')); }

/// Returns the last line: the runtime's warnings come before the program's own output.
std::string last_line(std::string text) {
    while (text.ends_with('\n')) {
        text.pop_back();
    }
    return text.substr(text.rfind('\n') + 1);
}

std::filesystem::path own_path() {
    std::error_code ignored;
    return std::filesystem::read_symlink("/proc/self/exe", ignored);
}

/// Returns the diomp-run in this program's directory, or else the one in PATH.
std::string launcher_path() {
    auto const beside = own_path().parent_path() / "diomp-run";
    return access(beside.c_str(), X_OK) == 0 ? beside.string() : "diomp-run";
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
    std::string const path = launcher_path();
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
    auto const probe = run({own_path().string(), "--probe-rank"});
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
    auto const job = run(
        {launcher_path(), "-n", "2", "--timeout", "30", "--", own_path().string(), "--probe-rank"});
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
    auto const wrapper = own_path().parent_path() / "diompcc";
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
