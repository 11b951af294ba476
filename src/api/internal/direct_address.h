// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Translation of addresses on the fast path.
#pragma once

#include "api/internal/state.h"

#include <cstddef>
#include <cstdint>

namespace diomp::api {

/// Address at which this process accesses `nbytes` bytes of symmetric memory of a rank, if the call
/// may take the fast path; otherwise nullptr.
[[gnu::always_inline]] inline std::byte *direct_address(int rank, std::uintptr_t address,
                                                        std::size_t nbytes) {
    std::uint64_t const offset = address - g_fast.own_base;
    std::uint64_t const extent = g_fast.extent.load(std::memory_order_relaxed);
    std::size_t const entry = fast_view::entry_of(rank);
    if (g_fast.rank[entry] == rank && offset < extent && nbytes <= extent - offset) [[likely]] {
        return reinterpret_cast<std::byte *>(address +
                                             static_cast<std::uintptr_t>(g_fast.distance[entry]));
    }
    return nullptr;
}
[[gnu::always_inline]] inline std::byte *direct_address(int rank, const void *remote,
                                                        std::size_t nbytes) {
    return direct_address(rank, reinterpret_cast<std::uintptr_t>(remote), nbytes);
}

/// Address of the counterpart of static data that was moved to symmetric memory; nullptr as above.
inline std::byte *direct_static_address(int rank, const void *remote, std::size_t nbytes) {
    auto const address = reinterpret_cast<std::uintptr_t>(remote);
    std::uint64_t const extent = g_fast.moved_extent.load(std::memory_order_acquire);
    std::uint64_t const offset = address - g_fast.moved_base;
    return offset < extent && nbytes <= extent - offset
               ? direct_address(rank, address + g_fast.moved_distance, nbytes)
               : nullptr;
}

} // namespace diomp::api
