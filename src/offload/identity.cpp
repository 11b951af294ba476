// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/internal/identity.h"

#include "memory/segment.h"

#include <fmt/core.h>

#include <cstring>
#include <dlfcn.h>
#include <link.h>

namespace diomp::offload {

/// Computes FNV-1a.
std::uint32_t hash_of(const char *text) {
    std::uint32_t value = 2166136261u;
    for (; *text != '\0'; ++text) {
        value = (value ^ static_cast<unsigned char>(*text)) * 16777619u;
    }
    return value;
}

identity identify(const void *host, const memory::segment &own) {
    if (host == nullptr) {
        return {};
    }
    std::uint64_t const offset =
        reinterpret_cast<std::uintptr_t>(host) - reinterpret_cast<std::uintptr_t>(own.base());
    if (offset < own.symmetric_extent()) {
        return {identity::origin::symmetric, 0, offset};
    }
    // Not dladdr, which takes the dynamic linker's lock: a thread that waits for this rank may hold
    // it.
    dl_find_object found{};
    if (::_dl_find_object(const_cast<void *>(host), &found) != 0) {
        return {};
    }
    const char *const name = found.dlfo_link_map->l_name;
    const char *const slash = std::strrchr(name, '/');
    return {identity::origin::variable, hash_of(slash == nullptr ? name : slash + 1),
            reinterpret_cast<std::uintptr_t>(host) -
                reinterpret_cast<std::uintptr_t>(found.dlfo_map_start)};
}

std::string describe(const identity &what) {
    switch (what.from) {
    case identity::origin::variable:
        return fmt::format("static data at +{:#x}", what.offset);
    case identity::origin::symmetric:
        return fmt::format("symmetric memory at +{:#x}", what.offset);
    case identity::origin::unknown:
        break;
    }
    return {};
}

} // namespace diomp::offload
