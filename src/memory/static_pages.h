// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Static data of the program in the segment: its pages are moved there and stay mapped at their own
// addresses, so that other ranks reach them as they reach symmetric memory.
//
// The pages stay in the segment until the process ends, also those of a library that the program
// closes. A forked child gets private ones again, with what they held at the fork.
#pragma once

#include "base/ids.h"
#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace diomp::transport {
class arena;
}

namespace diomp::memory {

/// Whole pages of static data.
struct page_run {
    std::uintptr_t base = 0;
    std::size_t nbytes = 0;

    [[nodiscard]] bool contains(std::uintptr_t address, std::size_t size) const {
        return address >= base && size <= nbytes && address - base <= nbytes - size;
    }
};

/// All writable static data of the program or the library that has [address, address + nbytes);
/// nullopt for other memory, for the data of this library, and under sanitizers that use the data.
std::optional<page_run> find_static_pages(std::uintptr_t address, std::size_t nbytes);

/// Where pages were moved to.
struct moved_pages {
    page_run pages;
    std::uint64_t offset = 0; ///< in the slot of their rank
};
/// The moved pages that contain the range, unless their library was closed.
std::optional<moved_pages> find_moved_pages(std::uintptr_t address, std::size_t nbytes);

/// Moves pages to `offset` of the slot of `own`, whole pages too. No other thread may write to them
/// meanwhile. Errors: OMPX_ERR_SYSTEM, and nothing has changed.
status move_static_pages(const transport::arena &arena, local_rank own, const page_run &pages,
                         std::uint64_t offset);

/// Records pages of other shared memory that the caller has mapped at `offset` of all slots: the
/// pages of each rank in its own. A forked child shares them.
void note_shared_pages(const page_run &pages, std::uint64_t offset);

/// arena::release_pages(), but keeps moved pages.
void release_other_pages(const transport::arena &arena, local_rank own, std::uint64_t offset,
                         std::size_t nbytes);

} // namespace diomp::memory
