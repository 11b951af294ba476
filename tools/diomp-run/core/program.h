// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Finds the program before any rank starts, so that a wrong name gives one message instead of N.
#pragma once

#include <string>

namespace diomp::run {

struct program_lookup {
    std::string path;    ///< path to execute; empty on failure
    int exit_status = 0; ///< status_not_found or status_cannot_execute
    std::string message;
};

/// Finds a program as a shell does: a name with a slash is a path, any other name is looked up in
/// `search_path` (PATH).
program_lookup find_program(const std::string &name, const std::string &search_path);

} // namespace diomp::run
