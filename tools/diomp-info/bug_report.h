// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One text for a bug report: versions, settings, topology, checks and errors, without secrets.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace diomp::info {

struct bug_report_options {
    std::string file; ///< "-": standard output
    std::string
        errors; ///< file with the output of the job that failed, "-": standard input; empty: none
};

/// Writes the report, a file with mode 600. Returns the exit status.
int write_bug_report(const bug_report_options &options);

/// What a report must not contain. Empty names are not looked for.
struct report_names {
    std::string home;
    std::string user;
    std::string host;
    std::vector<std::string> secrets; ///< not empty, the longest first
};

/// `text` without names of the user and the host, secrets, users and passwords of URLs, and numbers
/// that may be secrets: 32 or more hexadecimal digits.
[[nodiscard]] std::string redact(std::string_view text, const report_names &whose);
/// Whether the value of an environment variable of this name, in upper or lower case, may be a
/// secret.
[[nodiscard]] bool may_be_secret(std::string_view name);

} // namespace diomp::info
