// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/elf_view.h"
#include "base/llvm_versions.h"
#include "base/read_file.h"
#include "offload/service/target.h"

#include <algorithm>
#include <dlfcn.h>
#include <filesystem>

namespace diomp::offload::service {
namespace {

std::filesystem::path library_folder() {
    std::error_code failed;
    auto const program = std::filesystem::read_symlink("/proc/self/exe", failed);
    return program.parent_path() / DIOMP_BIN_TO_LIB / "diomp";
}

} // namespace

bool load_libomptarget() {
    static bool const done = [] {
        auto const folder = library_folder();
        auto const installed = installed_llvm_versions(folder);
        if (installed.empty()) {
            return false;
        }
        void *const library =
            ::dlopen((folder / installed.front().libomptarget).c_str(), RTLD_NOW | RTLD_GLOBAL);
        if (library == nullptr) {
            return false;
        }
        // Programs call this before main. Without it, OpenMP routines in regions crash.
        if (auto const start = reinterpret_cast<void (*)()>(::dlsym(library, "__tgt_rtl_init"))) {
            start();
        }
        return true;
    }();
    return done;
}

std::string load_libomptarget_of(const std::string &image_file) {
    auto const image = read_file(image_file);
    auto const needed = elf_view(image ? image.value() : std::string_view()).needed();
    auto const name = std::ranges::find_if(
        needed, [](const std::string &each) { return each.starts_with("libomptarget.so"); });
    if (name == needed.end()) {
        return {};
    }
    auto const folder = library_folder();
    auto const installed = installed_llvm_versions(folder);
    bool const is_there = std::ranges::any_of(
        installed, [&](const llvm_version &each) { return *name == each.libomptarget; });
    // Kept for the life of the process, like the first one.
    bool const is_loaded =
        is_there && ::dlopen((folder / *name).c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr;
    return is_loaded ? std::string() : *name;
}

} // namespace diomp::offload::service
