// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a host address is, in terms that mean the same on every rank of a program: by this, ranks
// learn that they mapped different variables although sizes and order agree.
#pragma once

#include "memory/segment.h"

#include <cstdint>
#include <string>

namespace diomp::offload {

struct identity {
    enum class origin : std::uint32_t {
        unknown,   ///< the stack, the heap: differs between ranks that do the same
        variable,  ///< static data: offset in the program or library that `module` stands for
        symmetric, ///< symmetric global memory: offset in the segment
    };
    origin from = origin::unknown;
    std::uint32_t module = 0; ///< hash of its file name, without folders
    std::uint64_t offset = 0;

    /// False only if it is known that the two are different things.
    [[nodiscard]] bool may_equal(const identity &other) const {
        return from == origin::unknown || other.from == origin::unknown ||
               (from == other.from && module == other.module && offset == other.offset);
    }
};
static_assert(sizeof(identity) == 16);

/// The same in all builds.
std::uint32_t hash_of(const char *text);

/// Null is unknown. Any thread, also in handlers.
identity identify(const void *host, const memory::segment &own);

/// "static data at +0x4040", "symmetric memory at +0x100", "" if unknown.
std::string describe(const identity &what);

} // namespace diomp::offload
