// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Transfers of programs that are compiled for AddressSanitizer: it reports a transfer beyond a
// buffer in the rank that makes the call, as if the program had copied the bytes.
#pragma once

#include "base/sanitizer.h"
#include "memory/memory.h"
#include "memory/segment.h"
#include "runtime/runtime.h"

namespace diomp::api {

/// The remote side is known here only if it is symmetric memory: its blocks are those of this rank.
inline bool is_symmetric(runtime::runtime &running, const void *remote) {
    auto const offset = running.space().own_offset(remote);
    return offset && *offset < running.segment().symmetric_extent();
}

inline void check_put_addressable(runtime::runtime &running, const void *dst, const void *src,
                                  std::size_t nbytes) {
    if (has_address_sanitizer()) [[unlikely]] {
        asan_check_load(src, nbytes);
        asan_check_store(is_symmetric(running, dst) ? dst : nullptr, nbytes);
    }
}

inline void check_get_addressable(runtime::runtime &running, const void *dst, const void *src,
                                  std::size_t nbytes) {
    if (has_address_sanitizer()) [[unlikely]] {
        asan_check_store(dst, nbytes);
        asan_check_load(is_symmetric(running, src) ? src : nullptr, nbytes);
    }
}

} // namespace diomp::api
