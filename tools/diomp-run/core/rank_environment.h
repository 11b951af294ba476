// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The environment of the ranks and the files for their output.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace diomp::run {

using named_settings = std::vector<std::pair<std::string, std::string>>;

/// Returns the settings of -x that have a value; the last one for each name.
named_settings
explicit_settings(const std::vector<std::pair<std::string, std::optional<std::string>>> &given);
/// Returns the variables that ranks on other hosts get: DIOMP_*, LD_LIBRARY_PATH and those of -x.
named_settings
forwarded_settings(char *const *own,
                   const std::vector<std::pair<std::string, std::optional<std::string>>> &given);
/// Returns DIOMP_TIMEOUT in seconds as the ranks will see it; 30 if it is unset, 0 or not a number.
[[nodiscard]] double peer_timeout(const named_settings &settings);
/// Returns the environment `own` with `settings` replacing variables of the same name, and without
/// the variables that the launcher sets per rank. `libraries`, if not empty, is prepended to
/// LD_LIBRARY_PATH.
std::vector<std::string> rank_environment(char *const *own, const named_settings &settings,
                                          const std::string &libraries = {});
/// Returns the directory of DiOMP's libomptarget in this installation, "" if there is none. Without
/// it in the search path, programs that were compiled without diompcc would find LLVM's
/// libomptarget, whose device memory other ranks cannot access. The directory has no other files.
std::string libomptarget_folder();

/// Creates the directory; does nothing if `path` is empty.
status make_output_directory(const std::string &path);
struct output_ends {
    unique_fd out;
    unique_fd err;
};
/// Opens the files rank-N.out and rank-N.err in an existing directory.
result<output_ends> open_output_files(int rank, const std::string &directory);

} // namespace diomp::run
