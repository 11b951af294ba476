// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Device memory in the global address space: the allocations of libomptarget, and transfers between
// device or host memory of any two ranks.
//
// Glossary. device: OpenMP's device number in this process; the number of devices (OpenMP's initial
// device) and -1 mean the host. device address: an address in the memory of a device. mapped
// address: a host address for which the device has a copy (`map`, omp_target_associate_ptr). device
// segment: the part of a device's memory that other ranks can access. counterpart: the allocation
// of another rank at the same offset of its segment on the device of the same number.
//
// Host devices, which run target regions on the processor, have their segments in the device area
// of the rank's slot in the arena: ranks of the node load and store them, and conduits transfer
// them like host segments. Accelerators have their own memory: their segments are reserved there,
// and their queues copy.
#pragma once

#include "config/settings.h"
#include "memory/memory.h"
#include "offload/internal/accelerators.h"
#include "offload/internal/alloc_directory.h"
#include "offload/internal/bounce.h"
#include "offload/internal/device_segment.h"
#include "offload/internal/inflight_guard.h"
#include "offload/internal/peer_segments.h"
#include "offload/internal/pinned_host.h"
#include "offload/internal/preregistered_segments.h"
#include "offload/internal/variables.h"
#include "offload/table.h"
#include "rma/rma.h"

#include <atomic>
#include <bitset>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace diomp::offload {

/// The program's OpenMP runtime. A function that it lacks is null.
struct openmp {
    int (*num_devices)() = nullptr;
    void *(*mapped_address)(const void *host, int device) = nullptr;
    void *(*allocate)(std::size_t nbytes, int device) = nullptr;
    void (*free)(void *address, int device) = nullptr;
    /// The devices that this rank drives, see alloc_directory.
    alloc_directory::device_list driven_devices = nullptr;
    /// libomptarget's table of `declare target` variables.
    variables::table_source variable_table = nullptr;
    /// Whether a device belongs to another host; its memory is then not in the address space.
    bool (*is_remote)(int device) = nullptr;
    /// OMP_TARGET_OFFLOAD=DISABLED: every device number means the host, and nothing is mapped.
    bool is_disabled = false;
};

/// A range [begin, begin + nbytes) of pointers and the distance that translates them into loadable
/// addresses.
struct translated_range {
    std::uintptr_t begin = 0;
    std::size_t nbytes = 0; ///< 0: no range
    std::ptrdiff_t distance = 0;

    [[nodiscard]] bool contains(const void *pointer, std::size_t count) const {
        std::uintptr_t const offset = reinterpret_cast<std::uintptr_t>(pointer) - begin;
        return offset < nbytes && count <= nbytes - offset;
    }
    [[nodiscard]] std::byte *translate(const void *pointer) const {
        return reinterpret_cast<std::byte *>(reinterpret_cast<std::uintptr_t>(pointer) +
                                             static_cast<std::uintptr_t>(distance));
    }
};

/// The result of locating both sides of a transfer, reusable for later transfers between the same
/// allocations. Valid while the epoch (devices::attach) equals `epoch` and, read after that,
/// *peer_generation equals `generation`.
struct translation {
    std::uint64_t epoch = 0; ///< 0: not valid
    const std::atomic<std::uint64_t> *peer_generation = nullptr;
    std::uint64_t generation = 0;
    translated_range here;
    translated_range there;
};

struct options {
    device_path_set paths = device_path_set::none; ///< allowed paths
    std::size_t segment_bytes = 0;                 ///< of an accelerator; 0: chosen by device
    std::size_t min_pin_bytes = 0;                 ///< see pinned_host
};

/// Thread-safe. Create before engine.start().
class devices {
public:
    /// Host devices per rank that can have a segment: LLVM's host plugin has this many.
    static constexpr int num_host_devices = 4;
    /// Minimum size of a host device's segment if the user sets none.
    static constexpr std::size_t min_segment_bytes = std::size_t{64} << 20;

    devices(memory::address_space &space, memory::segment &host, memory::directory &registered,
            const transport::arena &arena, messaging::engine &engine,
            messaging::call_service &calls, rma::transfers &transfers,
            preregistered_segments &preregistered, launch::job_info const &job,
            const options &chosen);
    ~devices();

    /// Call before the first transfer; without it there are no devices. `epoch` is incremented
    /// before device memory of this rank is freed.
    void attach(const openmp &functions, std::atomic<std::uint64_t> &epoch);

    /// Lets other ranks look up `declare target` variables; call when the program has registered
    /// its images.
    void open_variables() { variables_.open(); }
    /// Revokes other ranks' access to `declare target` variables.
    void close_variables() { variables_.close(); }

    /// Incremented before memory of own devices is freed; 0: not attached.
    [[nodiscard]] std::uint64_t epoch() const {
        return epoch_ == nullptr ? 0 : epoch_->load(std::memory_order_acquire);
    }

    // Calls by libomptarget; see table.h.
    void *allocate(const diomp_offload_request &request);
    bool release(int device, void *address);
    /// Call before libomptarget frees memory of its own, the size of which is unknown.
    void before_release(const void *address);

    // Calls by the runtime's collectives.
    result<device_segment *> segment_of(int device);
    /// The accelerator that holds the memory of an own device; null: the processor loads it, or it
    /// has no segment.
    const accelerator *accelerator_of(int device);
    /// The allocation that begins at the address; nullopt: none on this device.
    [[nodiscard]] std::optional<device_allocation> find_allocation_at(int device,
                                                                      const void *address);
    /// Index among the devices that this rank drives; -1: not among them.
    [[nodiscard]] int device_index_of(int device) const {
        return alloc_directory_.device_index_of(device);
    }
    /// Allocates memory of a kind of ompx_target_alloc and returns its offset. For `number` see
    /// device_allocation.
    result<std::uint64_t> allocate_kind(int device, ompx_mem_kind_t kind, std::size_t nbytes,
                                        std::uint64_t number);
    /// Frees an allocation. Waits for own device transfers, and for the sharers to invalidate their
    /// entries.
    status deallocate(device_segment &segment, std::uint64_t offset);

    /// One side of a transfer, in device or host memory. The pointer is not null unless the
    /// transfer is empty.
    struct side {
        const void *pointer = nullptr;
        int device = 0;
        const char *argument = ""; ///< "dst" or "src"
    };
    /// Direction and completion of a transfer.
    struct transfer_mode {
        rma::direction dir = rma::direction::put;
        bool nonblocking = false;      ///< may return early; `event` or a fence waits
        ompx_event_t *event = nullptr; ///< may be null
        bool on_device = false;        ///< local side; set by move()
    };
    /// Transfers between two sides. A blocking put returns when the source may be reused, a
    /// blocking get when the data has arrived. The rank must be valid. `reusable` receives the
    /// translation if later transfers can use it.
    result<rma::path> move(transfer_mode mode, world_rank rank, const side &remote,
                           const side &local, std::size_t nbytes, translation &reusable);

    /// Transfers a box; the pointers are those of the arrays that contain it. Blocks.
    result<rma::path> move_box(rma::direction dir, world_rank rank, const side &remote,
                               const side &local, const rma::box &shape);

    /// Locates [pointer, pointer + nbytes) of an own device; host memory if `on` is null.
    result<device_ptr> locate_own(const void *pointer, int device, std::size_t nbytes);
    /// Copies between accelerator memory that locate_own has found and host memory. Blocks.
    status copy_own(const device_ptr &there, std::byte *here, std::size_t nbytes, bool to_device);

    /// An address in the memory of a rank's accelerator.
    struct remote_device_memory {
        int device = 0;
        std::optional<std::uint64_t>
            offset;                ///< offset in its segment; nullopt: in a variable of an image
        std::uint64_t address = 0; ///< address, as the owner sees it
        /// Memory kind for the network; host: the network cannot access it.
        transport::memory_kind kind = transport::memory_kind::host;
    };
    /// The segment offset of memory of own device `device` that locate_own has found; nullopt: not
    /// in its segment.
    [[nodiscard]] std::optional<std::uint64_t> offset_in_segment(int device,
                                                                 const device_ptr &at) const;
    /// The address at which queues of `by`, an own device, access [offset, offset + nbytes) of a
    /// segment. The owner is on this node, or is this rank. OMPX_ERR_UNSUPPORTED: `by` has no
    /// access, or DIOMP_DEVICE_PATHS forbids it.
    result<std::byte *> address_for(world_rank owner, const remote_device_memory &there,
                                    std::size_t nbytes, const accelerator &by);
    /// Waits for a copy in the stream pool of `by`; serves messages meanwhile.
    status wait_for(const accelerator &by, const device::ticket &of) {
        return bounce_.wait_for(by, of);
    }

    /// Whether any device segment still has allocations.
    [[nodiscard]] bool in_use() const;
    /// Whether this address is or was in an accelerator's segment, also after the runtime has
    /// ended. Such memory is never libomptarget's own.
    static bool was_segment_memory(const void *address);

private:
    [[nodiscard]] int num_devices() const {
        return openmp_.num_devices == nullptr ? 0 : openmp_.num_devices();
    }
    [[nodiscard]] bool is_host(int device, int num) const {
        return device == -1 || device == num || openmp_.is_disabled;
    }
    status check_device(int device, int num, const char *argument) const;
    static error past_end_error(const std::string &what, std::uint64_t left, std::size_t nbytes);
    /// The error for a device whose memory is not in the address space.
    [[nodiscard]] error no_segment_error(int device) const;
    /// The error for a device of another host; nullopt: the device is local.
    [[nodiscard]] std::optional<error> remote_device_error(int device) const;
    device_segment *make_segment(const diomp_offload_request &request);
    std::unique_ptr<device_segment> make_host_segment(const diomp_offload_request &request);
    std::unique_ptr<device_segment> make_accelerator_segment(const diomp_offload_request &request);

    // locate.cpp. Each result has the range around the pointer for which one distance holds. `num`
    // is num_devices(), passed on because the call takes a lock.
    struct local_side {
        device_ptr at;
        translated_range range;
    };
    struct remote_side {
        memory::location location;
        translated_range range;
        const accelerator *on = nullptr; ///< device of this rank
        std::optional<remote_device_memory> device_memory;
        bool is_constant = false; ///< a variable in memory that is read-only for its owner
    };
    struct located_sides {
        local_side here;
        remote_side there;
    };
    /// The device address of a pointer: itself, or the address that it is mapped to.
    result<std::byte *> device_address(const void *pointer, int device) const;
    [[nodiscard]] device_segment *segment_containing(const void *address) const;
    result<local_side> locate_local(const void *pointer, int device, int num, std::size_t nbytes);
    result<remote_side> locate_remote(world_rank rank, const void *pointer, int device, int num,
                                      std::size_t nbytes);
    /// Locates the counterpart of own memory in `segment`; `device` is a number of `rank`, see
    /// alloc_directory::find.
    result<remote_side> locate_counterpart(world_rank rank, int device,
                                           const device_segment &segment,
                                           const device_allocation &own, std::uint64_t offset,
                                           std::size_t nbytes);
    /// The own device to which a pointer belongs that names memory of another rank's device
    /// `device`.
    [[nodiscard]] int own_device_of(const void *pointer, int device) const;
    result<memory::location> locate_peer_address(world_rank rank, const void *pointer, int device,
                                                 std::size_t nbytes);
    /// Locates both sides of a transfer; sets `reusable` if the translation can be reused.
    result<located_sides> locate(world_rank rank, const side &remote, const side &local, int num,
                                 std::size_t nbytes, translation &reusable);

    // locate_variable.cpp: `declare target` variables, which are outside of segments.
    /// The own copy of a variable; loads the image if necessary.
    result<device_ptr> locate_own_copy(const variable &of, int device);
    result<local_side> locate_own_variable(const variable &of, const void *pointer, int device,
                                           std::size_t nbytes);
    result<remote_side> locate_variable(world_rank rank, const variable &of, const void *pointer,
                                        int device, std::size_t nbytes);
    /// Fails for a put to read-only memory.
    static status check_writable(const remote_side &there, rma::direction dir);

    // move.cpp: transfers with an accelerator on at least one side.
    /// Bytes from the first to the last byte of a transfer on either side.
    struct extents {
        std::size_t remote;
        std::size_t local;
    };
    /// The remote location and both memory kinds, if the network itself can transfer between the
    /// two sides.
    [[nodiscard]] std::optional<memory::location>
    location_for_network(world_rank rank, const remote_device_memory &there, const device_ptr &here,
                         extents bytes);
    [[nodiscard]] std::optional<memory::location>
    location_for_network(world_rank rank, const memory::location &there, const device_ptr &here,
                         extents bytes);
    result<rma::path> start_or_move(transfer_mode mode, world_rank rank,
                                    const memory::location &there, std::byte *here,
                                    std::size_t nbytes);
    result<rma::path> move_remote_device(transfer_mode mode, world_rank rank,
                                         const remote_device_memory &there, const device_ptr &here,
                                         std::size_t nbytes);
    result<rma::path> move_in_process(transfer_mode mode, world_rank rank, const device_ptr &there,
                                      const device_ptr &here, std::size_t nbytes);
    result<rma::path> move_host(transfer_mode mode, world_rank rank, const memory::location &there,
                                const device_ptr &here, std::size_t nbytes);
    result<rma::path> copy_on_stream(transfer_mode mode, world_rank rank, const accelerator &by,
                                     std::byte *there, std::byte *here, std::size_t nbytes,
                                     rma::path path_used);
    // move_box.cpp
    result<rma::path> box_remote_device(rma::direction dir, world_rank rank,
                                        const remote_device_memory &there, const device_ptr &here,
                                        const rma::box_walk &walk);
    result<rma::path> box_in_process(rma::direction dir, const device_ptr &there,
                                     const device_ptr &here, const rma::box_walk &walk);
    result<rma::path> box_host(rma::direction dir, world_rank rank, const memory::location &there,
                               const device_ptr &here, const rma::box_walk &walk);
    // Calls before device memory is freed.
    /// Waits for accelerators' copies in flight, which may use the memory.
    void wait_copies();
    /// Waits for the network's transfers in flight that use this memory.
    void wait_inflight(const std::byte *address, std::size_t nbytes);
    void wait_inflight_of(const device_segment &segment, std::uint64_t offset);
    [[nodiscard]] std::string describe(const device_allocation &what) const;

    memory::address_space &space_;
    memory::segment &host_;
    const transport::arena &arena_;
    messaging::engine &engine_;
    rma::transfers &transfers_;
    world_rank self_;
    local_rank local_rank_;
    int num_local_;
    openmp openmp_;
    std::atomic<std::uint64_t> *epoch_ = nullptr;
    segment_table segments_;
    std::mutex creation_mutex_;        ///< serialises the creation of segments
    std::bitset<max_devices> refused_; ///< devices that have no space for a segment
    std::vector<std::unique_ptr<device_segment>> owned_segments_;
    alloc_directory alloc_directory_;
    options const options_;
    preregistered_segments &preregistered_;
    accelerators &accelerators_; ///< devices of preregistered_
    pinned_host pinned_;
    peer_segments peers_;
    inflight_guard inflight_;
    variables variables_;
    bounce bounce_;
    std::atomic<bool> has_accelerators_{false}; ///< any segment is on an accelerator
    std::atomic<bool> has_unwaited_copies_{
        false}; ///< copies were started that no call has waited for
    std::atomic<bool> has_warned_{false};
    std::atomic<std::uint64_t> num_unreachable_{0}; ///< allocations that other ranks cannot access
};

} // namespace diomp::offload
