// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What threads as ranks need to make calls: options of the class, and memory for buffers.
#pragma once

#include "coll/collective.h"
#include "support/thread_groups.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

namespace diomp::test {

inline coll::options options_for(thread_groups &job, bool oversubscribed = false,
                                 bool check_all_members = false) {
    coll::options chosen;
    chosen.arena_base = reinterpret_cast<std::uintptr_t>(job.ranks().arena().base());
    chosen.arena_span = job.ranks().arena().span();
    chosen.oversubscribed = oversubscribed;
    chosen.stage_buffer_half_bytes = oversubscribed ? 0 : std::size_t{600} << 10;
    chosen.shared_bcast_min_bytes = std::size_t{64} << 10;
    chosen.check_all_members = check_all_members;
    return chosen;
}

/// Memory for one rank's buffers: private, or in its slot behind the workspace.
class storage {
public:
    storage(thread_groups &job, world_rank self, std::size_t workspace_bytes)
        : global_(job.ranks().arena().slot(self) + workspace_bytes),
          size_(job.ranks().arena().slot_bytes() - workspace_bytes), private_(size_) {}
    /// `nbytes` for endpoint number `place`.
    std::byte *at(bool global, std::size_t place = 0, std::size_t nbytes = 0) {
        std::size_t const step = (nbytes + 63) / 64 * 64;
        EXPECT_LE((place + 1) * step + 64, size_);
        auto const address = reinterpret_cast<std::uintptr_t>(private_.base());
        std::byte *const own = private_.base() + (64 - address % 64) % 64;
        return (global ? global_ : own) + place * step;
    }

private:
    std::byte *global_;
    std::size_t size_;
    kept_pages private_;
};

} // namespace diomp::test
