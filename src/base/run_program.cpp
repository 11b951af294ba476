// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/run_program.h"

#include "base/unique_fd.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace diomp {
namespace {

/// What is left in the pipe, until all of its writers have closed it.
std::string read_all(int from) {
    std::string text;
    std::array<char, 4096> part; // NOLINT(*-member-init): filled by read
    for (;;) {
        ssize_t const size = ::read(from, part.data(), part.size());
        if (size > 0) {
            text.append(part.data(), static_cast<std::size_t>(size));
        } else if (size == 0 || errno != EINTR) {
            return text;
        }
    }
}

int wait_for_end(pid_t child) {
    int status = 0;
    while (::waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) {
            return -1;
        }
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

} // namespace

program_result run_program(std::vector<std::string> words, errors_to errors) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
        return {-1, ::strerrordesc_np(errno)};
    }
    unique_fd const reading(ends[0]);
    unique_fd writing(ends[1]);
    std::vector<char *> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string &each : words) {
        arguments.push_back(each.data());
    }
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, writing.get(), STDOUT_FILENO);
    if (errors == errors_to::output) {
        ::posix_spawn_file_actions_adddup2(&actions, writing.get(), STDERR_FILENO);
    } else if (errors == errors_to::null) {
        ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    }
    pid_t child = 0;
    int const failure =
        ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    writing.reset();
    if (failure != 0) {
        return {-1, words[0] + ": " + ::strerrordesc_np(failure)};
    }
    program_result done;
    done.output = read_all(reading.get());
    done.exit_status = wait_for_end(child);
    return done;
}

std::filesystem::path own_program() {
    std::error_code ignored;
    return std::filesystem::read_symlink("/proc/self/exe", ignored);
}

std::string program_beside(const std::string &name) {
    auto const beside = own_program().parent_path() / name;
    return ::access(beside.c_str(), X_OK) == 0 ? beside.string() : name;
}

} // namespace diomp
