// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The versions of LLVM whose libomptarget DiOMP builds. What their builds need is in
// llvm/versions/VERSION; CMake checks that both agree.
#pragma once

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace diomp {

struct llvm_version {
    int major;
    const char *libomptarget; ///< soname
    const char *entries;      ///< section of a program's offload entries
};

constexpr std::array<llvm_version, 3> llvm_versions{{
    {19, "libomptarget.so.19.1", "omp_offloading_entries"},
    {21, "libomptarget.so.21.1", "llvm_offload_entries"},
    {22, "libomptarget.so.22.1", "llvm_offload_entries"},
}};

/// Returns those whose libomptarget is in `folder`, in ascending order.
inline std::vector<llvm_version> installed_llvm_versions(const std::filesystem::path &folder) {
    std::vector<llvm_version> found;
    std::ranges::copy_if(llvm_versions, std::back_inserter(found), [&](const llvm_version &each) {
        std::error_code failure;
        return std::filesystem::exists(folder / each.libomptarget, failure);
    });
    return found;
}

} // namespace diomp
