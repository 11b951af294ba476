// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "startup.h"

#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <spawn.h>
#include <string>
#include <sys/wait.h>
#include <vector>

namespace diomp::bench {
namespace {

/// diomp-run is in the directory of this program, in the build tree and in an installation.
std::string find_launcher(const std::filesystem::path &self) {
    const std::filesystem::path beside = self.parent_path() / "diomp-run";
    std::error_code ignored;
    return std::filesystem::exists(beside, ignored) ? beside.string() : "diomp-run";
}

/// Runs a job. Returns its exit status, or -1 if it could not be started or was ended by a signal.
int run_job(std::vector<std::string> words) {
    std::vector<char *> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string &word : words) {
        arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    pid_t pid = 0;
    const int failure =
        posix_spawnp(&pid, arguments[0], &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failure != 0) {
        std::fprintf(stderr, "diomp-bench: cannot start %s: %s\n", arguments[0],
                     std::strerror(failure));
        return -1;
    }
    int status = 0;
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) {
            return -1;
        }
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

} // namespace

bool measure_startup(int ranks, int samples, report &into) {
    std::error_code failure;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", failure);
    const std::vector<std::string> command{find_launcher(self), "-n",   std::to_string(ranks), "--",
                                           self.string(),       "hello"};
    std::vector<double> samples_us;
    for (int sample = 0; sample <= samples; ++sample) {
        const stopwatch watch;
        const int status = run_job(command);
        if (status != 0) {
            std::fprintf(stderr, "diomp-bench: the start-up job of %d ranks ended with status %d\n",
                         ranks, status);
            return false;
        }
        if (sample > 0) { // the first job reads the programs from disk
            samples_us.push_back(watch.seconds() * 1e6);
        }
    }
    into.add({"startup", "startup", "-", 1, 0, summarise(std::move(samples_us), 1), ranks});
    return true;
}

} // namespace diomp::bench
