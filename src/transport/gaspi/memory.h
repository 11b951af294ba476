// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory as GPI-2 sees it: the rank's slot, the work segment, and on networks that pin nothing the
// whole address space.
#pragma once

#include "launch/gaspi/process.h"
#include "transport/arena.h"
#include "transport/gaspi/work_segment.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace diomp::transport::gaspi {

using segment = launch::gaspi::segment;

/// An address of local memory, as GPI-2 names it.
struct location {
    segment segment_id;
    std::uint64_t offset;
};

/// Immutable except for the pools of the work segment.
class memory {
public:
    /// Collective, after launch::gaspi::start.
    static result<std::unique_ptr<memory>> create(const arena &arena, world_rank self);

    memory(const memory &) = delete;
    memory &operator=(const memory &) = delete;

    [[nodiscard]] work_segment &work() { return work_; }
    /// Whether transfers can use this memory without staging.
    [[nodiscard]] bool reaches(const void *at, std::size_t nbytes) const;
    [[nodiscard]] location location_of(const void *at) const;
    [[nodiscard]] std::uint64_t offset_in_slot(world_rank owner, std::uint64_t address) const;
    /// For diomp-info: "TCP" or "InfiniBand".
    [[nodiscard]] const char *network() const { return is_tcp_ ? "TCP" : "InfiniBand"; }

private:
    memory(const arena &arena, world_rank self, work_segment work)
        : arena_(arena), self_(self), work_(std::move(work)) {}

    const arena &arena_;
    world_rank self_;
    work_segment work_;
    bool is_tcp_ = false;
    bool reaches_anywhere_ = false;
};

} // namespace diomp::transport::gaspi
