// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Helpers of matcher*.cpp: bytes of messages and their destinations.
#pragma once

#include "group/internal/matcher.h"

#include <algorithm>
#include <cstring>

namespace diomp::group {

template <typename Struct>
Struct read_as(std::span<const std::byte> payload) {
    Struct read;
    std::memcpy(&read, payload.data(), sizeof(read));
    return read;
}

/// Copies bytes [offset, ...) of a message into the head and body of the request.
inline void copy_into_request(const recv_request &request, std::size_t offset,
                              std::span<const std::byte> bytes) {
    std::size_t const head = request.head.size();
    if (offset < head && !bytes.empty()) {
        std::size_t const n = std::min(bytes.size(), head - offset);
        std::memcpy(request.head.data() + offset, bytes.data(), n);
        bytes = bytes.subspan(n);
        offset += n;
    }
    std::size_t const at = offset - head;
    if (offset >= head && at < request.body.size() && !bytes.empty()) {
        std::memcpy(request.body.data() + at, bytes.data(),
                    std::min(bytes.size(), request.body.size() - at));
    }
}

} // namespace diomp::group
