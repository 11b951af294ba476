// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The remote shell: the command that runs a command on another host.
#pragma once

#include "base/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace diomp::run {

/// The default remote shell. There is no terminal for a password prompt, so a refused log-in must
/// fail at once.
inline constexpr const char *default_remote_shell = "ssh -x -o BatchMode=yes";

/// Splits text into words as a shell does: blanks, '...', "..." and backslashes, but no expansion.
result<std::vector<std::string>> split_words(std::string_view text);
struct shell_command {
    std::vector<std::string> words;
    std::string path; ///< of the first word
};
/// Finds the program of a remote shell command in PATH. On failure `exit_status` receives
/// diomp-run's exit status.
result<shell_command> find_remote_shell(const std::string &text, int &exit_status);
/// Quotes `text` as one word for a POSIX shell.
std::string quote_for_shell(std::string_view text);
/// Returns the command line for the other host's shell: `program` and its arguments, with this
/// process's LD_LIBRARY_PATH if it is set. One string, since ssh joins its arguments and the remote
/// shell splits them again.
std::string remote_command(const std::string &program, const std::vector<std::string> &arguments,
                           const char *library_path);

} // namespace diomp::run
