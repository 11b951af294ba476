// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime_library.h"

#include <fmt/core.h>

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <link.h>
#include <string_view>
#include <unistd.h>

namespace diomp::info {
namespace {

/// Looks up a function; `missing` keeps the first name that is not found.
template <typename Function>
void resolve_symbol(void *handle, const char *name, Function &into, std::string &missing) {
    into = reinterpret_cast<Function>(dlsym(handle, name));
    if (into == nullptr && missing.empty()) {
        missing = name;
    }
}

} // namespace

result<runtime_library> open_runtime() {
    void *handle = dlopen(DIOMP_LIBRARY_FILE, RTLD_NOW | RTLD_GLOBAL);
    if (handle == nullptr) {
        return error(OMPX_ERR_SYSTEM, fmt::format("libdiomp cannot be opened: {}", dlerror()),
                     "keep bin/ and lib/ of the installation together, or set LD_LIBRARY_PATH");
    }
    runtime_library library;
    std::string missing;
    resolve_symbol(handle, "ompx_init", library.init, missing);
    resolve_symbol(handle, "ompx_rank_num", library.rank, missing);
    resolve_symbol(handle, "ompx_num_ranks", library.num_ranks, missing);
    resolve_symbol(handle, "ompx_local_rank_num", library.local_rank, missing);
    resolve_symbol(handle, "ompx_num_local_ranks", library.num_local_ranks, missing);
    resolve_symbol(handle, "ompx_segment_info", library.segment_info, missing);
    resolve_symbol(handle, "ompx_path_info", library.path_info, missing);
    resolve_symbol(handle, "ompx_get", library.get, missing);
    resolve_symbol(handle, "ompx_alloc", library.alloc, missing);
    resolve_symbol(handle, "ompx_put", library.put, missing);
    resolve_symbol(handle, "ompx_barrier_group", library.barrier, missing);
    resolve_symbol(handle, "ompx_finalize", library.finalize, missing);
    link_map *map = nullptr;
    if (dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void *>(&map)) == 0 && map != nullptr) {
        std::error_code ignored;
        library.path = std::filesystem::canonical(map->l_name, ignored).string();
        constexpr std::string_view marker = ".so.";
        if (auto const at = library.path.rfind(marker); at != std::string::npos) {
            library.version = library.path.substr(at + marker.size());
        }
    }
    if (!missing.empty()) {
        return error(OMPX_ERR_SYSTEM, fmt::format("{} has no {}", library.path, missing),
                     "another version of the library is found first; check LD_LIBRARY_PATH");
    }
    return library;
}

bool inside_job() {
    for (char **entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        if (std::string_view(*entry).starts_with("DIOMP_LAUNCH_")) {
            return true;
        }
    }
    return false;
}

} // namespace diomp::info
