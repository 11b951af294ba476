// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The window: one range of virtual addresses, the same in every process of the job, cut into slots
// of equal size, one per rank of the world. A slot is that rank's host segment, followed by the
// device area, where the segments of devices lie whose memory is host memory. Since no process has
// anything else in this range, an address in it never clashes with private memory of another
// process, and a rank may hand out the address of its own data, to any node.
//
// Only the slots of the own node are backed by memory; the others are address space that nothing
// else may take. All backed slots are one memfd per node: one descriptor travels from the node's
// first rank to the others over a Unix socket, and nothing is left behind when the last process
// ends. Pages are committed when touched. In front of the slots the file holds a control area per
// local rank, mapped wherever there is room, which conduits use for queues and flags.
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "launch/launch.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace diomp::conduit {

struct window_options {
    std::uint64_t base = 0;        ///< 0: the default of this build
    std::size_t usable_bytes = 0;  ///< per slot; 0: the node's memory, less in a very large job
    std::size_t control_bytes = 0; ///< per rank, multiple of the page size
    std::size_t device_bytes = 0;  ///< per slot, behind the usable ones
    /// As large as usable_bytes, at least device_bytes, and not more than there is room for.
    bool choose_device_bytes = false;
    /// Core files have all segments of the node, which commits them. Else what allow_in_core names.
    bool is_in_core = false;
};

/// Immutable after create; any thread.
class window {
public:
    /// Slots begin at multiples of this.
    static constexpr std::size_t max_alignment = std::size_t{64} << 20;

    /// Collective over the job: rank 0's geometry holds for all, each node's first rank makes the
    /// file.
    static result<std::unique_ptr<window>> create(launch::launcher &launcher,
                                                  const window_options &options);
    ~window();
    window(const window &) = delete;
    window &operator=(const window &) = delete;

    [[nodiscard]] std::uintptr_t base() const { return base_; }
    /// Distance between slots.
    [[nodiscard]] std::size_t slot_bytes() const { return slot_bytes_; }
    [[nodiscard]] std::size_t usable_bytes() const { return usable_bytes_; }
    /// Where the device area begins in each slot, a multiple of max_alignment, and its size.
    [[nodiscard]] std::size_t device_offset() const { return device_offset_; }
    [[nodiscard]] std::size_t device_bytes() const { return device_bytes_; }
    /// Of the world.
    [[nodiscard]] int num_slots() const { return num_slots_; }
    /// The same address in every process; memory is there only on the owner's node.
    [[nodiscard]] std::byte *slot(world_rank owner) const {
        return reinterpret_cast<std::byte *>(base_ + owner.index() * slot_bytes_);
    }
    [[nodiscard]] std::byte *control(local_rank owner) const {
        return control_ + owner.index() * control_bytes_;
    }

    /// Gives the physical pages that lie wholly inside [offset, offset + nbytes) of a slot back to
    /// the system; the range reads as zeros afterwards.
    void release_pages(local_rank owner, std::uint64_t offset, std::size_t nbytes) const;
    /// Core files have the pages that lie wholly or partly inside [offset, offset + nbytes) of a
    /// slot.
    void allow_in_core(local_rank owner, std::uint64_t offset, std::size_t nbytes) const;
    /// Bytes of physical memory behind a slot.
    [[nodiscard]] std::size_t resident_bytes(local_rank owner) const;

    /// Where the window lies by default in this build, and how much of the address space it may
    /// take.
    static std::uint64_t default_base();
    static std::uint64_t max_span();

private:
    window() = default;
    status map_control();
    status map_slots(const launch::job_info &job);
    void keep_out_of_core(void *begin, std::size_t nbytes) const;
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
    int num_slots_ = 0;
    int num_local_ = 0;
    std::byte *control_ = nullptr;
    bool mapped_ = false;
    bool is_in_core_ = false;
    std::vector<world_rank> local_ranks_; ///< [place on the node]
};

} // namespace diomp::conduit
