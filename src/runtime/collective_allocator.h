// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collective allocation. Every rank first allocates in its own segment; then one round of the group
// checks that all ranks passed equal arguments and that all had space. If not, every rank frees its
// block. A heap's layout depends on its call history only, so the heaps are equal again afterwards.
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "diomp/types.h"
#include "runtime/internal/modules.h"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace diomp::memory {
struct allocation;
}
namespace diomp::sync {
struct call_signature;
}
namespace diomp::transport {
class arena;
}

namespace diomp::runtime {

/// Any thread.
class collective_allocator {
public:
    collective_allocator(memory::segment &own, memory::address_space &space,
                         memory::directory &directory, rma::transfers &transfers,
                         offload::devices &devices, group::group_registry &groups,
                         coll::collectives &collectives, const transport::arena &arena,
                         local_rank self)
        : segment_(own), space_(space), directory_(directory), transfers_(transfers),
          devices_(devices), groups_(groups), collectives_(collectives), arena_(arena),
          self_(self) {}

    /// Allocates global memory. Symmetric and asymmetric allocations are collective over the world:
    /// every rank allocates, then all compare size, alignment and outcome, so that all fail
    /// together. Never returns nullptr. Zeroed memory is zero on every rank before any rank
    /// returns, so a put may follow at once. Errors: OMPX_ERR_ARG, OMPX_ERR_NOMEM,
    /// OMPX_ERR_MISMATCH.
    enum class contents { undefined, zero };
    result<void *> allocate(ompx_mem_kind_t kind, std::size_t nbytes, std::size_t alignment,
                            contents initial = contents::undefined);
    /// Frees an allocation. Collective for symmetric and asymmetric memory: frees after all ranks
    /// have called. Null is allowed. Errors: OMPX_ERR_ADDRESS unless `ptr` starts an allocation.
    status free(void *ptr);
    /// Allocates or frees memory of a device; collective as on the host. Errors: in addition
    /// OMPX_ERR_UNSUPPORTED if the device's memory is not in the global address space.
    result<void *> allocate_on_device(int device, ompx_mem_kind_t kind, std::size_t nbytes);
    status free_on_device(int device, void *ptr);
    /// Allocates anew, copies and frees; collective for symmetric and asymmetric memory. Null: 0
    /// bytes, of asymmetric memory on all ranks. After an error the old block is as it was. Errors:
    /// those of allocate and free.
    result<void *> reallocate(void *ptr, std::size_t nbytes);
    /// Registers private memory that every rank has, and moves static data to symmetric memory.
    /// Collective. Errors: OMPX_ERR_ADDRESS on all ranks if one cannot register its range,
    /// OMPX_ERR_MISMATCH. In registration.cpp.
    status register_symmetric(void *ptr, std::size_t nbytes);
    status unregister_symmetric(void *ptr);

private:
    [[nodiscard]] result<memory::allocation> find_start(const void *ptr) const;
    /// Equal on all ranks for the blocks of a collective allocation, by which calls compare them.
    [[nodiscard]] std::uint64_t common_offset(std::uint64_t offset) const;
    // Of the following the caller holds the call lock of the world. They are calls of several
    // rounds: a rank that is late fails, too, so that the heaps stay equal.
    result<void *> allocate_together(ompx_mem_kind_t kind, std::size_t nbytes,
                                     std::size_t alignment, contents initial);
    /// Collective allocation as a part of `call`, which all ranks must make.
    result<void *> allocate_as(const sync::call_signature &call, ompx_mem_kind_t kind,
                               std::size_t nbytes, std::size_t alignment, contents initial);
    result<std::uint64_t> allocate_in_segment(ompx_mem_kind_t kind, std::size_t nbytes,
                                              std::size_t alignment);
    /// Releases a block of a collective allocation once all ranks have called with this name.
    status release_on_all(std::uint64_t offset, std::uint64_t name);
    /// Allocates blocks that begin at the same offset on all ranks, of which each has as many
    /// addresses as the largest one (memory::segment::needs_alike_blocks).
    result<std::uint64_t> allocate_alike(const sync::call_signature &call, std::size_t nbytes,
                                         std::size_t alignment, contents initial);
    /// The largest values of all ranks: of this allocation's blocks and of the segments' private
    /// extents (memory::segment::alike_bounds).
    struct largest_values {
        std::uint64_t block_bytes = 0;
        std::uint64_t extent_bytes = 0;
    };
    result<largest_values> exchange_bounds(const largest_values &of_rank);
    struct symmetric_range;
    /// Compares the ranges of all ranks, and takes their bases.
    status exchange_ranges(symmetric_range &own);
    /// Moves static data of all ranks to symmetric memory, if it is not there yet. Returns where
    /// the range is in the segment; nullopt if it stays private memory.
    result<std::optional<std::uint64_t>> share_static_data(const symmetric_range &range);
    /// Compares call and outcome on all ranks, after each has tried to allocate `nbytes`.
    status agree_on_allocation(const sync::call_signature &call, std::size_t nbytes,
                               const result<std::uint64_t> &taken, const char *remedy);

    memory::segment &segment_;
    memory::address_space &space_;
    memory::directory &directory_;
    rma::transfers &transfers_;
    offload::devices &devices_;
    group::group_registry &groups_;
    coll::collectives &collectives_;
    const transport::arena &arena_;
    local_rank self_;
    std::uint64_t num_asymmetric_on_devices_ = 0; ///< collective calls: one thread at a time
};

} // namespace diomp::runtime
