// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Device memory and the copies that access it. Only the code below this header depends on CUDA or
// HIP.
//
// Glossary: backend: one vendor's devices (or parts of host memory that stand for devices).
// reservation: a range of device addresses that never moves. committed: the parts of a reservation
// that have physical memory. peer memory: a reservation of another process, mapped into this one.
// queue: copies that a device executes in order (a "stream" of the papers and vendors). pinned:
// host memory that a device accesses directly. peer access: copies from and to another device's
// memory without staging through the host.
//
// Lifetime: objects returned by a backend keep alive what they need of the driver and may outlive
// the backend (with the host backend except for the ranges, which belong to the caller). Calls are
// thread-safe unless a class states otherwise.
//
// To add a backend: docs/devices.md.
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "diomp/types.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace diomp::device {

/// A device's number within its backend, 0 .. num_devices - 1: the order of the vendor's library,
/// after CUDA_VISIBLE_DEVICES and similar variables.
using device_id = id<struct device_id_tag>;

/// Equal in all processes; all zero: the device has none.
using device_uuid = std::array<std::byte, 16>;

/// Properties on which upper layers select and which diomp-info shows.
struct properties {
    std::string name;
    device_uuid uuid{};
    std::string pci_bus_id; ///< "0000:3b:00.0"; empty if the device is not on a PCI bus
    int numa_node = -1;     ///< nearest NUMA node; -1: unknown
    std::size_t total_bytes = 0;
    std::size_t free_bytes = 0; ///< at the time of the call
    int multiprocessors = 0;
    bool memory_grows = false;         ///< a reservation uses memory only where it is committed
    bool memory_shares = false;        ///< share() and open_shared() are supported
    bool host_loadable = false;        ///< the processor can load and store the memory
    bool is_shared_by_service = false; ///< kernels of several processes run concurrently (MPS)
};

/// An extent of a reservation in a form that another process of the node can open: a file
/// descriptor, which is sent over a Unix socket, or, if it has none, a token of 64 bytes that only
/// the vendor's library interprets.
struct shared_extent {
    std::uint64_t offset_bytes = 0;
    std::uint64_t size_bytes = 0;
    unique_fd fd;
    std::array<std::byte, 64> token{}; ///< used only if fd is not valid
};

/// Extents of a reservation. May be destroyed, with its descriptors, after it has been opened.
struct shared_handle {
    std::uint64_t reserved_bytes = 0;
    std::vector<shared_extent> extents;
};

/// A reservation of this process. One thread at a time, except base() and the sizes, which are
/// thread-safe.
class memory {
public:
    memory() = default;
    virtual ~memory() = default;
    memory(const memory &) = delete;
    memory &operator=(const memory &) = delete;

    [[nodiscard]] virtual std::byte *base() const = 0;
    [[nodiscard]] virtual std::size_t reserved_bytes() const = 0;
    [[nodiscard]] virtual std::size_t committed_bytes() const = 0;

    /// Commits at least [offset_bytes, offset_bytes + nbytes); committed memory is left unchanged.
    /// The contents of new memory are undefined. Each missing range becomes one extent to share, so
    /// a few large commits are better than many small ones. Errors: OMPX_ERR_RANGE past the
    /// reservation, OMPX_ERR_NOMEM; ranges committed before the failure stay committed.
    virtual status commit(std::size_t offset_bytes, std::size_t nbytes) = 0;

    [[nodiscard]] virtual std::size_t num_extents() const = 0;
    static constexpr std::size_t all_extents = std::numeric_limits<std::size_t>::max();
    /// Exports the committed extents except the first `num_known`, at most `max_extents`, in the
    /// order of committing. Blocks briefly. OMPX_ERR_UNSUPPORTED: not supported here.
    virtual result<shared_handle> share(std::size_t num_known, std::size_t max_extents) = 0;
};

/// Memory of another process, mapped into this one; the destructor unmaps it. The owner must keep
/// the memory until then. One thread at a time.
class peer_memory {
public:
    peer_memory() = default;
    virtual ~peer_memory() = default;
    peer_memory(const peer_memory &) = delete;
    peer_memory &operator=(const peer_memory &) = delete;

    /// The address of the owner's base in this process.
    [[nodiscard]] virtual std::byte *base() const = 0;
    [[nodiscard]] virtual std::size_t mapped_bytes() const = 0;
    /// Maps extents that the owner has added. OMPX_ERR_ARG: an extent overlaps another or exceeds
    /// the range.
    virtual status map_more(const shared_handle &added) = 0;
};

/// An element-wise reduction of arrays.
struct reduction {
    ompx_type_t type = 0;
    ompx_op_t op = 0;
    std::size_t divisor = 1; ///< for OMPX_AVG: divides the sum
};

/// An atomic read-modify-write of a word in device memory.
struct word_update {
    enum class kind : std::uint8_t { fetch, compare_swap };

    std::uint64_t address = 0; ///< aligned to the size of the type
    std::uint64_t operand = 0; ///< in the low bytes; compare and swap: the expected value
    std::uint64_t desired = 0; ///< of a compare and swap
    ompx_type_t type = 0;      ///< a type that ompx_atomic_fetch accepts
    ompx_op_t op = 0;          ///< an operator that it accepts
    kind what = kind::fetch;
};

/// Executes copies, reductions and updates in order. One thread at a time.
class queue {
public:
    queue() = default;
    virtual ~queue() = default; ///< the queue must be idle or have failed
    queue(const queue &) = delete;
    queue &operator=(const queue &) = delete;

    /// Copies between any two of device memory, peer memory and host memory, and memory of other
    /// devices to which the device has peer access. Returns immediately where the device supports
    /// that, which includes pinned host memory. Both ranges must stay valid until the queue is
    /// idle.
    virtual status copy(void *dst, const void *src, std::size_t nbytes) = 0;
    /// Computes dst[i] = sources[0][i] op sources[1][i] op ... for i < count, in this order, with
    /// bitwise the results of the collectives' loops for the processor. 1 to max_sources sources;
    /// dst may be one of them and overlaps no other. All memory must be on devices that copies of
    /// this queue can access. Completion and lifetimes as for copy(). OMPX_ERR_UNSUPPORTED: see
    /// backend::can_reduce.
    virtual status reduce(const reduction &how, void *dst, std::span<const void *const> sources,
                          std::size_t count);
    static constexpr std::size_t max_sources = 64;
    /// Whether all work is complete and visible; does not block. An error belongs to some operation
    /// of the queue, which cannot be used afterwards.
    virtual result<bool> is_idle() = 0;
    /// Blocks until the queue is idle. No timeout: the driver ends a device that hangs, which
    /// returns an error here. Callers that must make progress elsewhere poll is_idle instead.
    virtual status wait() = 0;
    /// The vendor's stream, on which other libraries of the vendor can enqueue work; is_idle and
    /// wait cover that work. Null: the backend has no streams.
    [[nodiscard]] virtual void *native_stream() const { return nullptr; }
    /// Executes up to max_updates updates in order (none: loads the kernel only), by a thread of
    /// the device: atomic against all atomics of system scope of kernels that run there meanwhile.
    /// Needs room for one more block on the device. old_values[i], in pinned host memory, receives
    /// the word before the update. Completion as for copy(); the updates themselves are copied. The
    /// first call may block while the driver compiles. OMPX_ERR_UNSUPPORTED: the runtime has no
    /// kernel for the device.
    virtual status update(std::span<const word_update> all, std::uint64_t *old_values);
    static constexpr std::size_t max_updates = 32;
};

/// Makes a device current in the calling thread during its lifetime, as the vendor's libraries
/// expect. Scopes of a thread must be destroyed on that thread in reverse order.
class current_scope {
public:
    current_scope() = default;
    virtual ~current_scope() = default;
    current_scope(const current_scope &) = delete;
    current_scope &operator=(const current_scope &) = delete;
};

/// Owns pinned memory, or the pinning of memory.
class pinned_memory {
public:
    using release_function = std::function<void(void *)>;

    pinned_memory() = default;
    pinned_memory(void *base, std::size_t size_bytes, release_function release)
        : base_(base), size_bytes_(size_bytes), release_(std::move(release)) {}
    pinned_memory(pinned_memory &&other) noexcept { swap(other); }
    pinned_memory &operator=(pinned_memory &&other) noexcept {
        swap(other);
        return *this;
    }
    ~pinned_memory() {
        if (base_ != nullptr) {
            release_(base_);
        }
    }

    [[nodiscard]] std::byte *base() const { return static_cast<std::byte *>(base_); }
    [[nodiscard]] std::size_t size_bytes() const { return size_bytes_; }

private:
    void swap(pinned_memory &other) noexcept {
        std::swap(base_, other.base_);
        std::swap(size_bytes_, other.size_bytes_);
        std::swap(release_, other.release_);
    }

    void *base_ = nullptr;
    std::size_t size_bytes_ = 0;
    release_function release_;
};

/// Calls that take a device return OMPX_ERR_ARG for one that does not exist.
class backend {
public:
    backend() = default;
    virtual ~backend() = default;
    backend(const backend &) = delete;
    backend &operator=(const backend &) = delete;

    [[nodiscard]] virtual const char *name() const = 0; ///< "host", "cuda", "hip"
    [[nodiscard]] virtual int num_devices() const = 0;  ///< at least 1
    /// Opens a temporary context on the device unless one exists.
    virtual result<properties> describe(device_id device) = 0;
    /// Returns properties::uuid without opening a context.
    virtual result<device_uuid> uuid_of(device_id device) = 0;

    /// Reserves device memory. Nothing is committed if memory_grows is true, otherwise all of it.
    /// The size is rounded up to the device's granularity.
    result<std::unique_ptr<memory>> reserve(device_id device, std::size_t max_bytes) {
        return reserve_at(device, max_bytes, 0);
    }
    /// reserve() at this address if the backend can; 0: anywhere.
    virtual result<std::unique_ptr<memory>> reserve_at(device_id device, std::size_t max_bytes,
                                                       std::uint64_t preferred) = 0;
    /// Maps memory that another process of the node has shared, for copies by `device`.
    virtual result<std::unique_ptr<peer_memory>> open_shared(device_id device,
                                                             const shared_handle &handle) = 0;

    /// Whether queues of `device` have peer access to memory of `other`. The first call that
    /// returns true enables it, including for later reservations.
    virtual result<bool> can_access(device_id device, device_id other) = 0;

    virtual result<std::unique_ptr<queue>> make_queue(device_id device) = 0;
    /// Whether queues of `device` support this reduction. The first call opens a context and may
    /// take a second while the driver compiles.
    virtual bool can_reduce(device_id device, const reduction &how);
    /// Makes the device current for calls to the vendor's other libraries. OMPX_ERR_UNSUPPORTED:
    /// there are none.
    virtual result<std::unique_ptr<current_scope>> make_current(device_id device);
    /// Allocates host memory that is pinned for all devices of the backend.
    virtual result<pinned_memory> allocate_pinned(std::size_t nbytes) = 0;
    /// Pins existing host memory, which must outlive the returned object.
    virtual result<pinned_memory> pin(void *base, std::size_t nbytes) = 0;
    /// The device whose memory contains the address, no matter which library allocated it; nullopt
    /// for host memory.
    [[nodiscard]] virtual std::optional<device_id> owner_of(const void *address) = 0;
};

/// Path of a vendor's library.
struct library_path_option {
    std::string path; ///< empty: its usual names in the system's search path
};

/// Creates a backend for the devices that CUDA's driver reports. OMPX_ERR_UNSUPPORTED names what is
/// missing: the library, one of its functions, or a device. Opens no context.
result<std::unique_ptr<backend>> create_cuda(const library_path_option &option);
/// Creates a backend for HIP's devices; see create_cuda.
result<std::unique_ptr<backend>> create_hip(const library_path_option &option);

/// Returns the NUMA node of each device that create_cuda would report, [device]; -1: unknown. Opens
/// no context. Errors as for create_cuda.
result<std::vector<int>> numa_nodes_of_cuda(const library_path_option &option);
/// Returns the NUMA nodes of HIP's devices; see numa_nodes_of_cuda.
result<std::vector<int>> numa_nodes_of_hip(const library_path_option &option);

/// A part of host memory that stands for a device's memory. It belongs to the caller.
struct host_range {
    void *base = nullptr;
    std::size_t reserved_bytes = 0;
};
/// Creates one device per range. OMPX_ERR_ARG: no ranges.
result<std::unique_ptr<backend>> create_host(const std::vector<host_range> &ranges);

/// For backends: fails for a device that does not exist.
status check_device(const backend &of, device_id device);
/// For backends: the error for a range outside of the reservation.
error out_of_range(const memory &of, std::size_t offset_bytes, std::size_t nbytes);

} // namespace diomp::device
