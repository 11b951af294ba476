// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/identity.h"

#include <fmt/core.h>

#include <cstring>
#include <dlfcn.h>

namespace diomp::offload {
namespace {

/// FNV-1a.
std::uint32_t hash_of(const char *text) {
    std::uint32_t value = 2166136261u;
    for (; *text != '\0'; ++text) {
        value = (value ^ static_cast<unsigned char>(*text)) * 16777619u;
    }
    return value;
}

} // namespace

identity identify(const void *host, const memory::segment &own) {
    if (host == nullptr) {
        return {};
    }
    std::uint64_t const offset =
        reinterpret_cast<std::uintptr_t>(host) - reinterpret_cast<std::uintptr_t>(own.base());
    if (offset < own.symmetric_extent()) {
        return {identity::origin::symmetric, 0, offset};
    }
    Dl_info found{};
    if (::dladdr(host, &found) == 0 || found.dli_fname == nullptr) {
        return {};
    }
    const char *const slash = std::strrchr(found.dli_fname, '/');
    return {identity::origin::variable, hash_of(slash == nullptr ? found.dli_fname : slash + 1),
            reinterpret_cast<std::uintptr_t>(host) -
                reinterpret_cast<std::uintptr_t>(found.dli_fbase)};
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
