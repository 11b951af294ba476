// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The sizes of the arena, on which all ranks agree at the start.
#pragma once

#include "transport/arena.h"

namespace diomp::transport {

struct arena_geometry {
    static constexpr std::size_t page_bytes = 4096;
    [[nodiscard]] static constexpr std::size_t round_up(std::size_t value, std::size_t granule) {
        return (value + granule - 1) / granule * granule;
    }

    std::uint64_t base = 0;
    std::size_t usable_bytes = 0;
    std::size_t device_bytes = 0;
    int num_slots = 1;
    int has_redzones = 0; ///< arena_options::has_redzones of rank 0

    [[nodiscard]] std::size_t device_offset() const;
    [[nodiscard]] std::size_t slot_bytes() const;
};

/// Whether nodes decide the slots of the ranks, so that ranks of different nodes share them.
[[nodiscard]] bool has_slots_by_node(const launch::job_info &job, const arena_options &options);

/// Rank 0 chooses the geometry for the whole job, so that the slots are equal everywhere. It learns
/// from each node which ranks it has, and publishes their placement. Collective.
result<arena_geometry> agree_geometry(launch::launcher &launcher, const arena_options &options);

} // namespace diomp::transport
