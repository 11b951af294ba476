// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Device memory in the global address space: what libomptarget asks for, and transfers between
// memory of devices and hosts of any two ranks.
//
// Glossary. device: OpenMP's device number in this process; the number of devices (OpenMP's initial
// device) and -1 mean the host. device address: in the memory of a device. mapped address: a host
// address for which the device has a copy (`map`, omp_target_associate_ptr). device segment: the
// part of a device's memory that other ranks reach. counterpart: the allocation of another rank at
// the same offset of its segment of the same device number.
//
// Host devices, which run target regions on the processor, have their segments in the device area
// of the rank's slot in the window, so the ranks of the node load and store them, and conduits
// carry them, as they do with host segments. Accelerators have memory of their own: their segments
// are reserved there, and their queues copy.
#pragma once

#include "base/settings.h"
#include "memory/memory.h"
#include "offload/accelerators.h"
#include "offload/bounce.h"
#include "offload/device_segment.h"
#include "offload/early_segments.h"
#include "offload/ledger.h"
#include "offload/local_uses.h"
#include "offload/peer_segments.h"
#include "offload/pinned_host.h"
#include "offload/table.h"
#include "offload/variables.h"
#include "rma/rma.h"

#include <atomic>
#include <bitset>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace diomp::offload {

/// The program's OpenMP, whichever it is. Null where it has no such function.
struct openmp {
    int (*num_devices)() = nullptr;
    void *(*mapped_address)(const void *host, int device) = nullptr;
    void *(*allocate)(std::size_t nbytes, int device) = nullptr;
    void (*free)(void *address, int device) = nullptr;
    /// The devices that this rank drives, see ledger.
    ledger::device_list driven = nullptr;
    /// What libomptarget knows of `declare target` variables.
    variables::table_source variable_table = nullptr;
    /// Whether a device belongs to another host, whose memory is not in the address space.
    bool (*is_remote)(int device) = nullptr;
    /// OMP_TARGET_OFFLOAD=DISABLED: every device is the host, nothing is mapped.
    bool is_disabled = false;
};

/// Pointers of one side of a transfer, from `begin` on, that lead somewhere by adding a distance.
struct stretch {
    std::uintptr_t begin = 0;
    std::size_t nbytes = 0; ///< 0: none
    std::ptrdiff_t distance = 0;

    [[nodiscard]] bool holds(const void *pointer, std::size_t count) const {
        std::uintptr_t const offset = reinterpret_cast<std::uintptr_t>(pointer) - begin;
        return offset < nbytes && count <= nbytes - offset;
    }
    [[nodiscard]] std::byte *place(const void *pointer) const {
        return reinterpret_cast<std::byte *>(reinterpret_cast<std::uintptr_t>(pointer) +
                                             static_cast<std::uintptr_t>(distance));
    }
};

/// What a transfer has found out, for the next one between the same allocations. Valid while the
/// epoch (devices::use) is `epoch` and, after that, *peer_generation is `generation`.
struct route {
    std::uint64_t epoch = 0; ///< 0: nothing learned
    const std::atomic<std::uint64_t> *peer_generation = nullptr;
    std::uint64_t generation = 0;
    stretch here;
    stretch there;
};

struct options {
    device_ways paths = device_ways::none; ///< allowed ones
    std::size_t segment_bytes = 0;         ///< of an accelerator; 0: as much as is useful
    std::size_t pin_from_bytes = 0;        ///< see pinned_host
};

/// Any thread. Create before engine.start().
class devices {
public:
    /// Host devices per rank that can have a segment: as many as LLVM's host plugin has.
    static constexpr int num_host_devices = 4;
    /// Of a segment whose size the user left open.
    static constexpr std::size_t least_segment_bytes = std::size_t{64} << 20;

    devices(memory::address_space &space, memory::segment &host, memory::directory &registered,
            const conduit::window &window, conduit::engine &engine, conduit::call_service &calls,
            rma::transfers &transfers, early_segments &early, launch::job_info const &job,
            const options &chosen);
    ~devices();

    /// Before the first transfer; without it there are no devices. `epoch` is counted up before
    /// device memory of this rank is freed.
    void use(const openmp &functions, std::atomic<std::uint64_t> &epoch);

    /// Other ranks may ask for `declare target` variables: the program has registered its images.
    void open_variables() { variables_.open(); }
    /// They go away.
    void close_variables() { variables_.close(); }

    /// Counted up before memory of own devices is freed; 0: nobody counts.
    [[nodiscard]] std::uint64_t epoch() const {
        return epoch_ == nullptr ? 0 : epoch_->load(std::memory_order_acquire);
    }

    // For libomptarget; see table.h.
    void *allocate(const diomp_offload_request &request);
    bool release(int device, void *address);
    /// Before libomptarget frees memory of its own, whose size nobody says.
    void before_release(const void *address);

    // For the collective calls of the runtime.
    result<device_segment *> segment_of(int device);
    /// What has the memory of an own device; null: the processor loads it, or it has no segment.
    const accelerator *accelerator_of(int device);
    /// nullopt if the address begins no allocation of that device.
    [[nodiscard]] std::optional<device_allocation> find_start(int device, const void *address);
    /// Among the devices that this rank drives; -1: it is none of them.
    [[nodiscard]] int place_of(int device) const { return ledger_.place_of(device); }
    /// The kinds of ompx_target_alloc. `number` as in device_allocation.
    result<std::uint64_t> take(int device, ompx_mem_kind_t kind, std::size_t nbytes,
                               std::uint64_t number);
    /// Waits for own transfers of devices, and for those who know of it.
    status give_back(device_segment &segment, std::uint64_t offset);

    /// One side of a transfer, in a device's memory or the host's. The pointer is not null unless
    /// nothing is transferred.
    struct side {
        const void *pointer = nullptr;
        int device = 0;
        const char *argument = ""; ///< "dst" or "src"
    };
    /// When a transfer may still be under way on return.
    struct when {
        rma::direction way = rma::direction::put;
        bool at_once = false;          ///< returns as soon as it can, and `event` or a fence waits
        ompx_event_t *event = nullptr; ///< may be null
        bool on_device = false;        ///< the local side; move() finds out
    };
    /// Put blocks until the source may be reused, get until the bytes are there, unless they are to
    /// return at once. The rank is valid. `learned` gets the route if it can be used again.
    result<rma::path> move(when how, world_rank rank, const side &remote, const side &local,
                           std::size_t nbytes, route &learned);

    /// The same for a box; the pointers are those of the arrays that it lies in.
    result<rma::path> move_box(rma::direction way, world_rank rank, const side &remote,
                               const side &local, const rma::box &shape);

    /// Where [pointer, pointer + nbytes) of an own device is; host memory if `on` is null.
    result<end> find_own(const void *pointer, int device, std::size_t nbytes);
    /// Between an own accelerator's memory, which find_own has found, and host memory. Blocks.
    status copy_own(const end &there, std::byte *here, std::size_t nbytes, bool to_device);

    /// A place in the memory of a rank's accelerator.
    struct far_memory {
        int device = 0;
        std::optional<std::uint64_t> offset; ///< in its segment; nullopt: in an image's variable
        std::uint64_t address = 0;           ///< as the owner sees it
        /// For networks; host: they do not reach it.
        conduit::memory_kind kind = conduit::memory_kind::host;
    };
    /// Where memory of own device `device`, which find_own has found, is for others; nullopt: not
    /// in its segment.
    [[nodiscard]] std::optional<std::uint64_t> place_in_segment(int device, const end &at) const;
    /// The address of [offset, offset + nbytes) of a segment for queues of `by`, an own device. The
    /// owner is on this node, or this rank. OMPX_ERR_UNSUPPORTED: it does not reach it, or
    /// DIOMP_DEVICE_PATHS forbids it.
    result<std::byte *> reach(world_rank owner, const far_memory &there, std::size_t nbytes,
                              const accelerator &by);
    /// Waits for what has been started in the stream pool of `by`; serves messages meanwhile.
    status wait_for(const accelerator &by, const device::ticket &of) {
        return bounce_.wait_for(by, of);
    }

    /// Whether a device still uses memory in the window.
    [[nodiscard]] bool in_use() const;
    /// Whether memory at this address has been in an accelerator's segment, also when the runtime
    /// has ended: it is never libomptarget's own.
    static bool was_ours(const void *address);

private:
    [[nodiscard]] int num_devices() const {
        return openmp_.num_devices == nullptr ? 0 : openmp_.num_devices();
    }
    [[nodiscard]] bool is_host(int device, int num) const {
        return device == -1 || device == num || openmp_.is_disabled;
    }
    status check_device(int device, int num, const char *argument) const;
    static error past_end(const std::string &what, std::uint64_t left, std::size_t nbytes);
    /// The error about a device whose memory is not in the address space.
    [[nodiscard]] error no_segment(int device) const;
    /// The same of a device of another host; nullopt: it is not one.
    [[nodiscard]] std::optional<error> why_remote(int device) const;
    device_segment *make_segment(const diomp_offload_request &request);
    std::unique_ptr<device_segment> make_host_segment(const diomp_offload_request &request);
    std::unique_ptr<device_segment> make_accelerator_segment(const diomp_offload_request &request);

    // locate.cpp. Each gives the stretch that the pointer lies in, if all of it leads the same way.
    // `num` is num_devices(), which takes a lock: asked once for a transfer.
    struct local_side {
        end at;
        stretch reach;
    };
    struct remote_side {
        memory::place place;
        stretch reach;
        const accelerator *on = nullptr; ///< of this rank
        std::optional<far_memory> far;
        bool is_constant = false; ///< a variable that the owner cannot write
    };
    struct both_sides {
        local_side here;
        remote_side there;
    };
    /// The device address that a pointer means here: as it is, or of what is mapped.
    result<std::byte *> device_address(const void *pointer, int device) const;
    [[nodiscard]] device_segment *segment_around(const void *address) const;
    result<local_side> locate_local(const void *pointer, int device, int num, std::size_t nbytes);
    result<remote_side> locate_remote(world_rank rank, const void *pointer, int device, int num,
                                      std::size_t nbytes);
    /// Of own memory in `segment`; `device` is a number of `rank`, see ledger::find.
    result<remote_side> locate_counterpart(world_rank rank, int device,
                                           const device_segment &segment,
                                           const device_allocation &own, std::uint64_t offset,
                                           std::size_t nbytes);
    /// The own device that a pointer for another rank's device `device` belongs to.
    [[nodiscard]] int own_device_of(const void *pointer, int device) const;
    result<memory::place> locate_as_peer_sees(world_rank rank, const void *pointer, int device,
                                              std::size_t nbytes);
    /// Both ends of a transfer, and the route if there is one.
    result<both_sides> locate(world_rank rank, const side &remote, const side &local, int num,
                              std::size_t nbytes, route &learned);

    // locate_variable.cpp: `declare target` variables, which are in no segment.
    /// Loads it if it is not there.
    result<end> own_copy_of(const variable &of, int device);
    result<local_side> locate_own_variable(const variable &of, const void *pointer, int device,
                                           std::size_t nbytes);
    result<remote_side> locate_variable(world_rank rank, const variable &of, const void *pointer,
                                        int device, std::size_t nbytes);
    /// A put to what its owner cannot write.
    static status check_writable(const remote_side &there, rma::direction way);

    // move.cpp: with accelerators on at least one side.
    /// From the first byte of a transfer to its last, on either side.
    struct extents {
        std::size_t remote;
        std::size_t local;
    };
    /// Both ends of a transfer, if the network moves the bytes between them by itself.
    [[nodiscard]] std::optional<memory::place>
    place_for_network(world_rank rank, const far_memory &there, const end &here, extents bytes);
    [[nodiscard]] std::optional<memory::place>
    place_for_network(world_rank rank, const memory::place &there, const end &here, extents bytes);
    result<rma::path> start_or_move(when how, world_rank rank, const memory::place &there,
                                    std::byte *here, std::size_t nbytes);
    result<rma::path> move_far(when how, world_rank rank, const far_memory &there, const end &here,
                               std::size_t nbytes);
    result<rma::path> move_within(when how, world_rank rank, const end &there, const end &here,
                                  std::size_t nbytes);
    result<rma::path> move_host(when how, world_rank rank, const memory::place &there,
                                const end &here, std::size_t nbytes);
    result<rma::path> run(when how, world_rank rank, const accelerator &by, std::byte *there,
                          std::byte *here, std::size_t nbytes, rma::path way);
    // move_box.cpp
    result<rma::path> box_far(rma::direction way, world_rank rank, const far_memory &there,
                              const end &here, const rma::box_walk &walk);
    result<rma::path> box_within(rma::direction way, const end &there, const end &here,
                                 const rma::box_walk &walk);
    result<rma::path> box_host(rma::direction way, world_rank rank, const memory::place &there,
                               const end &here, const rma::box_walk &walk);
    // Before device memory is freed.
    /// Copies of accelerators that are under way may use it.
    void finish_copies();
    /// The network's transfers that are under way with this memory.
    void finish_uses(const std::byte *address, std::size_t nbytes);
    void finish_uses_of(const device_segment &segment, std::uint64_t offset);
    [[nodiscard]] std::string describe(const device_allocation &what) const;

    memory::address_space &space_;
    memory::segment &host_;
    const conduit::window &window_;
    conduit::engine &engine_;
    rma::transfers &transfers_;
    world_rank self_;
    local_rank place_;
    int num_local_;
    openmp openmp_;
    std::atomic<std::uint64_t> *epoch_ = nullptr;
    segment_table segments_;
    std::mutex making_;                ///< over the creation of segments
    std::bitset<max_devices> refused_; ///< accelerators that have no room for one
    std::vector<std::unique_ptr<device_segment>> made_;
    ledger ledger_;
    options const options_;
    early_segments &early_;
    accelerators &accelerators_; ///< of early_
    pinned_host pinned_;
    peer_segments peers_;
    local_uses uses_;
    variables variables_;
    bounce bounce_;
    std::atomic<bool> has_accelerators_{false}; ///< some segment lies on one
    std::atomic<bool> may_copy_{false};         ///< copies have been started that nobody waited for
    std::atomic<bool> has_warned_{false};
    std::atomic<std::uint64_t> num_foreign_{0}; ///< allocations that other ranks cannot reach
};

} // namespace diomp::offload
