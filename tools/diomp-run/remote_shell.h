// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The command that runs a command on another host.
#pragma once

#include "base/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace diomp::run {

/// What is used when the user names none. Without a terminal to ask for a password, a refusal must
/// come at once.
inline constexpr const char *default_remote_shell = "ssh -x -o BatchMode=yes";

/// Words as a shell would split them: blanks, '...', "..." and backslashes; nothing is expanded.
result<std::vector<std::string>> split_words(std::string_view text);
struct shell_command {
    std::vector<std::string> words;
    std::string path; ///< of the first one
};
/// The program of a remote shell command, looked for in PATH. On failure `exit_status` is
/// diomp-run's.
result<shell_command> find_remote_shell(const std::string &text, int &exit_status);
/// `text` as one word for a POSIX shell.
std::string quote_for_shell(std::string_view text);
/// What the other host's shell is to run: `program` and its arguments, with our LD_LIBRARY_PATH if
/// there is one. One string, since ssh joins its arguments and has a shell split them again.
std::string remote_command(const std::string &program, const std::vector<std::string> &arguments,
                           const char *library_path);

} // namespace diomp::run
