// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whether the target regions of a program can run on remote devices, as far as its file shows that
// before it runs: which compiler made them, and which libomptarget they need. Nothing is certain
// about a program without regions: it may load a library that has some, or execute another program.
#pragma once

#include "base/result.h"

#include <string>
#include <string_view>

namespace diomp::run {

struct program_regions {
    enum class format {
        none,    ///< no device code of its own
        llvm,    ///< LLVM's up to 20, which DiOMP's libomptarget reads
        llvm_21, ///< LLVM's from 21 on
        gnu,     ///< gcc's, for libgomp
    };
    bool is_elf = false;
    format made_as = format::none;
    std::string libomptarget; ///< the version that it needs, as "libomptarget.so.19.1"; or ""
    std::string openmp;       ///< "libomp.so.5", "libgomp.so.1", ...; "" without OpenMP
    std::string compiler;     ///< "clang version 19.1.7", "" where the file does not say
};

/// Of the bytes of an executable file.
[[nodiscard]] program_regions look_at_regions(std::string_view file);

/// An error if the program's regions cannot run on remote devices, whatever else happens. A file
/// that cannot be read is none: its start reports that.
status check_remote_regions(const std::string &path);

/// Why a program that has ended has not used its remote devices, as its file suggests, and what to
/// do. `path` may be empty.
[[nodiscard]] std::string guess_why_unused(const std::string &path);

} // namespace diomp::run
