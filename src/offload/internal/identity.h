// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Identifies a host address in terms that are equal on all ranks of a program. Ranks use it to
// detect that they mapped different variables although sizes and order agree.
#pragma once

#include <cstdint>
#include <string>

namespace diomp::memory {
class segment;
}

namespace diomp::offload {

struct identity {
    enum class origin : std::uint32_t {
        unknown,   ///< stack or heap: differs between ranks that do the same
        variable,  ///< static data: offset in the program or library given by `module`
        symmetric, ///< symmetric global memory: offset in the segment
    };
    origin from = origin::unknown;
    std::uint32_t module = 0; ///< hash of the file name, without directories
    std::uint64_t offset = 0;

    /// False only if the two are known to differ.
    [[nodiscard]] bool may_equal(const identity &other) const {
        return from == origin::unknown || other.from == origin::unknown ||
               (from == other.from && module == other.module && offset == other.offset);
    }
};
static_assert(sizeof(identity) == 16);

/// Equal in all builds.
std::uint32_t hash_of(const char *text);

/// Identifies an address; null is unknown. Thread-safe, also in handlers.
identity identify(const void *host, const memory::segment &own);

/// "static data at +0x4040", "symmetric memory at +0x100", "" if unknown.
std::string describe(const identity &what);

} // namespace diomp::offload
