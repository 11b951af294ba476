// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The environment of ranks and the files for their output.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace diomp::run {

using named_settings = std::vector<std::pair<std::string, std::string>>;

/// Those of -x that have a value; the last one of a name.
named_settings
explicit_settings(const std::vector<std::pair<std::string, std::optional<std::string>>> &given);
/// What ranks on other hosts get of ours: DIOMP_* and LD_LIBRARY_PATH, and what -x names.
named_settings
forwarded_settings(char *const *own,
                   const std::vector<std::pair<std::string, std::optional<std::string>>> &given);
/// DIOMP_TIMEOUT as ranks will see it, or 30 s if that is unset, 0 or no number.
[[nodiscard]] double lost_after(const named_settings &settings);
/// `own` with `settings` in place of what they name, and without what the launcher sets per rank.
/// `libraries`, if not empty, comes first in LD_LIBRARY_PATH.
std::vector<std::string> rank_environment(char *const *own, const named_settings &settings,
                                          const std::string &libraries = {});
/// The folder of DiOMP's libomptarget beside this program, "" if there is none. Programs that were
/// compiled without diompcc find LLVM's own otherwise, whose device memory is not reached by other
/// ranks. Nothing else is in that folder.
std::string libomptarget_folder();

/// Nothing to do for an empty name.
status make_output_directory(const std::string &path);
struct output_ends {
    unique_fd out;
    unique_fd err;
};
/// Files rank-N.out and rank-N.err in a directory that exists.
result<output_ends> open_output_files(int rank, const std::string &directory);

} // namespace diomp::run
