// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "command.h"

#include "base/unique_fd.h"

#include <fmt/core.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace diomp::info {

command_result run_command(const std::vector<std::string> &words) {
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

std::filesystem::path own_path() {
    std::error_code ignored;
    return std::filesystem::read_symlink("/proc/self/exe", ignored);
}

std::string launcher_path() {
    auto const beside = own_path().parent_path() / "diomp-run";
    return access(beside.c_str(), X_OK) == 0 ? beside.string() : "diomp-run";
}

} // namespace diomp::info
