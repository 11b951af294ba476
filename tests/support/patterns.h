// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Data that tells who wrote it, for whom and when: a byte that ends up in the wrong place is seen.
#pragma once

#include "support/sanitized.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace diomp_test {

DIOMP_NOT_INSTRUMENTED_BEGIN
inline std::uint8_t pattern_byte(int from, int to, int round, std::size_t index) {
    std::uint64_t x =
        (static_cast<std::uint64_t>(from) * 131 + static_cast<std::uint64_t>(to)) * 8191 +
        static_cast<std::uint64_t>(round) * 127 + index;
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdull;
    x ^= x >> 29;
    return static_cast<std::uint8_t>(x);
}

inline void write_pattern(std::uint8_t *to_bytes, int from, int to, int round, std::size_t nbytes) {
    for (std::size_t i = 0; i < nbytes; ++i) {
        to_bytes[i] = pattern_byte(from, to, round, i);
    }
}
DIOMP_NOT_INSTRUMENTED_END

inline std::vector<std::uint8_t> pattern(int from, int to, int round, std::size_t nbytes) {
    std::vector<std::uint8_t> bytes(nbytes);
    write_pattern(bytes.data(), from, to, round, nbytes);
    return bytes;
}

} // namespace diomp_test
