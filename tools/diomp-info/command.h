// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Other programs that diomp-info runs: itself, diomp-run, the compiler wrapper.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace diomp::info {

struct command_result {
    int exit_status = -1; ///< 128 + n if signal n ended it
    std::string output;   ///< standard output and standard error
};

/// Runs a program without input and waits for its end.
[[nodiscard]] command_result run_command(const std::vector<std::string> &words);

/// The path of this program.
[[nodiscard]] std::filesystem::path own_path();
/// The diomp-run in this program's directory, or else the one in PATH.
[[nodiscard]] std::string launcher_path();

} // namespace diomp::info
