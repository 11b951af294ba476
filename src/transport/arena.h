// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The arena: one range of virtual addresses, at the same addresses in every process of the job,
// divided into slots of equal size. A slot is a rank's host segment, followed by the device area,
// which contains the segments of devices whose memory is host memory. No process uses this range
// for anything else, so an address in it never clashes with private memory of another process.
//
// A process maps the slots of its own node. Where all ranks of the job have room without smaller
// segments, each has a slot of its own, the one of its number in the job, and an address alone
// names a location. In larger jobs the number of a slot is the local rank, so that ranks of
// different nodes share it: there (rank, address) names a location, and the number of ranks of the
// job limits no segment.
//
// All slots of a node are one memfd: its descriptor is sent from the node's first rank to the
// others over a Unix socket, and nothing remains when the last process ends. Pages are committed
// when touched. Before the slots, the file has a control area per local rank, mapped at any
// address, which conduits use for queues and flags; after them the tables with an entry per rank of
// the job, which the node's first rank writes and all read.
#pragma once

#include "base/function_ref.h"
#include "base/ids.h"
#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace diomp::launch {
class launcher;
class placement;
struct job_info;
} // namespace diomp::launch

namespace diomp::transport {

struct arena_options {
    std::uint64_t base = 0; ///< 0: default of this build
    /// Per slot; 0: the node's memory, less on a node with very many ranks.
    std::size_t usable_bytes = 0;
    std::size_t control_bytes = 0; ///< per rank, multiple of the page size
    std::size_t device_bytes = 0;  ///< per slot, after the usable bytes
    /// As large as usable_bytes, at least device_bytes, and at most the available space.
    bool choose_device_bytes = false;
    /// Blocks are followed by bytes of no block. Rank 0's choice, so that all heaps are equal.
    bool has_redzones = false;
    /// Core files include all segments of the node, which commits them. Otherwise they include the
    /// ranges passed to allow_in_core.
    bool is_in_core = false;
    /// Every rank of the job has a slot of its own, even if that makes the segments smaller. Equal
    /// on all ranks.
    bool one_slot_per_rank = false;
    /// How a user makes the segments smaller, for errors.
    const char *size_remedy = "set DIOMP_SEGMENT_SIZE to a smaller value";
};

/// Tables with an entry per rank of the job, in memory of the node: [world rank].
struct node_tables {
    std::span<const world_rank> ranks;          ///< 0, 1, 2 and so on
    std::span<const std::int32_t> nodes;        ///< numbered in the order of their lowest ranks
    std::span<const std::int32_t> slot_numbers; ///< see above
};

/// Immutable after create(); thread-safe.
class arena {
public:
    /// Slots begin at multiples of this.
    static constexpr std::size_t max_alignment = std::size_t{64} << 20;

    /// Collective over the job: rank 0's geometry applies to all, each node's first rank creates
    /// the file.
    static result<std::unique_ptr<arena>> create(launch::launcher &launcher,
                                                 const arena_options &options);
    ~arena();
    arena(const arena &) = delete;
    arena &operator=(const arena &) = delete;

    [[nodiscard]] std::uintptr_t base() const { return base_; }
    /// Distance between slots.
    [[nodiscard]] std::size_t slot_bytes() const { return slot_bytes_; }
    [[nodiscard]] std::size_t usable_bytes() const { return usable_bytes_; }
    /// Offset of the device area in each slot, a multiple of max_alignment, and its size.
    [[nodiscard]] std::size_t device_offset() const { return device_offset_; }
    [[nodiscard]] std::size_t device_bytes() const { return device_bytes_; }
    /// Whether blocks are followed by bytes of no block, on all ranks.
    [[nodiscard]] bool has_redzones() const { return has_redzones_; }
    /// The ranks of the job, or of its largest node if ranks of different nodes share slots.
    [[nodiscard]] int num_slots() const { return num_slots_; }
    /// The size of all slots: addresses in [base(), base() + span_bytes()) are in the arena.
    [[nodiscard]] std::size_t span_bytes() const {
        return static_cast<std::size_t>(num_slots_) * slot_bytes_;
    }
    [[nodiscard]] const node_tables &tables() const { return tables_; }
    [[nodiscard]] int slot_number(world_rank owner) const {
        return tables_.slot_numbers[owner.index()];
    }
    /// Whether any two ranks, of different nodes, have the same slot.
    [[nodiscard]] bool shares_slots() const {
        return tables_.slot_numbers.size() > static_cast<std::size_t>(num_slots_);
    }
    /// Whether these two ranks have the same slot.
    [[nodiscard]] bool share_slot(world_rank a, world_rank b) const {
        return a != b && slot_number(a) == slot_number(b);
    }
    /// The rank whose memory an address of this slot is in this process; nullopt: no rank's.
    [[nodiscard]] std::optional<world_rank> rank_here(std::size_t number) const;
    /// The slot's address in every process that maps it, which those of the owner's node do.
    [[nodiscard]] std::byte *slot(world_rank owner) const {
        return reinterpret_cast<std::byte *>(base_ + static_cast<std::size_t>(slot_number(owner)) *
                                                         slot_bytes_);
    }
    [[nodiscard]] std::byte *slot(local_rank owner) const {
        return slot(local_ranks_[owner.index()]);
    }
    [[nodiscard]] std::byte *control(local_rank owner) const {
        return control_ + owner.index() * control_bytes_;
    }

    /// Where the memory of a slot of this node is, for a process that maps it, too. The descriptor
    /// is the arena's.
    struct slot_range {
        int file = -1;
        std::uint64_t offset_in_file = 0;
    };
    [[nodiscard]] slot_range file_of(local_rank owner) const { return {fd_, slot_in_file(owner)}; }
    /// Returns the physical pages that lie wholly inside [offset, offset + nbytes) of a slot to the
    /// system; the range reads as zeros afterwards.
    void release_pages(local_rank owner, std::uint64_t offset, std::size_t nbytes) const;
    /// Maps pages of a slot once more, at `to`, in place of what is mapped there.
    status map_again(local_rank owner, std::uint64_t offset, std::size_t nbytes, void *to) const;
    /// Whether pages of a slot are mapped at `at`, by the system's list of mappings; true if it
    /// cannot be read.
    [[nodiscard]] bool is_mapped(local_rank owner, std::uint64_t offset, std::size_t nbytes,
                                 const void *at) const;
    /// Includes the pages that lie wholly or partly inside [offset, offset + nbytes) of a slot in
    /// core files.
    void allow_in_core(local_rank owner, std::uint64_t offset, std::size_t nbytes) const;
    /// Calls each(offset, nbytes) for the parts of [offset, offset + nbytes) of a slot that have
    /// physical memory; all others are zeros.
    void for_each_data(local_rank owner, std::uint64_t offset, std::size_t nbytes,
                       function_ref<void(std::uint64_t, std::size_t)> each) const;
    /// Bytes of physical memory of a slot.
    [[nodiscard]] std::size_t resident_bytes(local_rank owner) const;

    /// Default address of the arena in this build, and its maximum size.
    static std::uint64_t default_base();
    static std::uint64_t max_span();

private:
    arena() = default;
    status map_control();
    status map_slots(const char *size_remedy);
    status map_tables();
    void keep_out_of_core(void *begin, std::size_t nbytes) const;
    [[nodiscard]] std::uint64_t tables_in_file() const {
        return static_cast<std::uint64_t>(num_local_) * (control_bytes_ + slot_bytes_);
    }
    [[nodiscard]] std::uint64_t slot_in_file(local_rank owner) const {
        return static_cast<std::uint64_t>(num_local_) * control_bytes_ +
               owner.index() * slot_bytes_;
    }

    int fd_ = -1;
    std::uintptr_t base_ = 0;
    std::size_t usable_bytes_ = 0;
    std::size_t device_offset_ = 0;
    std::size_t device_bytes_ = 0;
    std::size_t slot_bytes_ = 0;
    std::size_t control_bytes_ = 0;
    int num_ranks_ = 0;
    int num_slots_ = 0;
    int num_local_ = 0;
    std::byte *control_ = nullptr;
    void *table_memory_ = nullptr;
    node_tables tables_;
    bool mapped_ = false;
    bool is_in_core_ = false;
    bool has_redzones_ = false;
    std::vector<world_rank> local_ranks_; ///< [local rank]
};

/// The remedy where a segment of `segment_bytes` has no space for `nbytes`: a larger size by the
/// variable `setting`, unless no segment could have it.
std::string segment_size_remedy(const char *setting, std::uint64_t nbytes,
                                std::uint64_t segment_bytes);

} // namespace diomp::transport
