// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/cpu.h"

#include <unistd.h>

namespace diomp {
namespace {

std::size_t reported_or(int name, std::size_t otherwise_bytes) {
    long const reported_bytes = ::sysconf(name);
    return reported_bytes > 0 ? static_cast<std::size_t>(reported_bytes) : otherwise_bytes;
}

} // namespace

std::size_t level2_cache_bytes() {
    return reported_or(_SC_LEVEL2_CACHE_SIZE, std::size_t{1} << 20);
}

std::size_t level3_cache_bytes() {
    return reported_or(_SC_LEVEL3_CACHE_SIZE, std::size_t{32} << 20);
}

} // namespace diomp
