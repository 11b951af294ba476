// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Other programs that the library and its tools run: symbolizers, diomp-run, compilers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace diomp {

struct program_result {
    int exit_status = -1; ///< 128 + n if signal n ended it; -1: not started, `output` says why
    std::string output;
};

/// Where the standard error of a program goes.
enum class errors_to : std::uint8_t { output, null, own_standard_error };

/// Runs a program, found by PATH, without input, and returns its standard output. Blocks until it
/// has ended. Any thread.
[[nodiscard]] program_result run_program(std::vector<std::string> words, errors_to errors);

/// The path of this program.
[[nodiscard]] std::filesystem::path own_program();
/// The program of this name in this program's directory, or else the name, for PATH.
[[nodiscard]] std::string program_beside(const std::string &name);

} // namespace diomp
