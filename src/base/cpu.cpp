// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/cpu.h"

#include <unistd.h>

namespace diomp {

std::size_t level2_cache_bytes() {
    long const reported_bytes = ::sysconf(_SC_LEVEL2_CACHE_SIZE);
    return reported_bytes > 0 ? static_cast<std::size_t>(reported_bytes) : std::size_t{1} << 20;
}

} // namespace diomp
