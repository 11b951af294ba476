// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The bytes of letters, and where they go. For mailbox*.cpp.
#pragma once

#include "group/mailbox.h"

#include <algorithm>
#include <cstring>

namespace diomp::group {

template <typename Struct>
Struct read_as(std::span<const std::byte> payload) {
    Struct read;
    std::memcpy(&read, payload.data(), sizeof(read));
    return read;
}

/// Bytes [offset, ...) of a letter to where the receipt wants them.
inline void place_bytes(const receipt &place, std::size_t offset,
                        std::span<const std::byte> bytes) {
    std::size_t const head = place.head.size();
    if (offset < head && !bytes.empty()) {
        std::size_t const n = std::min(bytes.size(), head - offset);
        std::memcpy(place.head.data() + offset, bytes.data(), n);
        bytes = bytes.subspan(n);
        offset += n;
    }
    std::size_t const at = offset - head;
    if (offset >= head && at < place.body.size() && !bytes.empty()) {
        std::memcpy(place.body.data() + at, bytes.data(),
                    std::min(bytes.size(), place.body.size() - at));
    }
}

} // namespace diomp::group
