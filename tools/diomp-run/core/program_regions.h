// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Checks whether the target regions of a program can run on remote devices, as far as its file
// shows it: which compiler made the regions, and which libomptarget they need. A program without
// regions may still load a library that has some, or execute another program.
#pragma once

#include "base/result.h"

#include <string>
#include <string_view>

namespace diomp::run {

struct program_regions {
    enum class format {
        none, ///< no device code
        llvm,
        gnu, ///< of gcc, for libgomp
    };
    bool is_elf = false;
    format offload_format = format::none;
    std::string entries;      ///< section of LLVM's entries, which tells their format; or ""
    std::string libomptarget; ///< needed version, as "libomptarget.so.19.1"; or ""
    std::string openmp;       ///< "libomp.so.5", "libgomp.so.1", ...; "" without OpenMP
    std::string compiler;     ///< "clang version 19.1.7"; "" if unknown
};

/// Inspects the content of an executable file.
[[nodiscard]] program_regions inspect_regions(std::string_view file);

/// Returns an error if the program's regions cannot run on remote devices. A file that cannot be
/// read is not an error here: starting it reports that.
status check_remote_regions(const std::string &path);

/// Returns the probable reason why a program has not used its remote devices, and a remedy. `path`
/// may be empty.
[[nodiscard]] std::string explain_unused_devices(const std::string &path);

} // namespace diomp::run
