// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Device memory and the copies that reach it. What CUDA and HIP are is known below this header
// only.
//
// Glossary: backend: one vendor's devices (or parts of host memory that stand for devices).
// reservation: a range of device addresses that never moves. committed: the parts of it that have
// memory behind them. peer memory: a reservation of another process, mapped into this
// one. queue: copies that a device works off one after the other (a "stream" of the papers and
// vendors). pinned: host memory that a device reads and writes without a detour. to reach: to copy
// from and to another device's memory directly, without a detour through the host.
//
// Lifetime: what a backend hands out keeps what it needs of the driver; it may outlive the backend
// (of the host backend: not the ranges, which are the caller's). Calls may come from any thread
// unless a class says otherwise.
//
// To add a backend: docs/devices.md.
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "base/unique_fd.h"

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
/// after CUDA_VISIBLE_DEVICES and the like.
using device_id = id<struct device_id_tag>;

/// The same in every process; all zero: the device has none.
using device_uuid = std::array<std::byte, 16>;

/// What upper layers select on, and what diomp-info shows.
struct properties {
    std::string name;
    device_uuid uuid{};
    std::string pci_bus_id; ///< "0000:3b:00.0"; empty if it is not on such a bus
    int numa_node = -1;     ///< whose host memory is next to it; -1: not known
    std::size_t total_bytes = 0;
    std::size_t free_bytes = 0; ///< at the time of the call
    int multiprocessors = 0;
    bool memory_grows = false;         ///< a reservation costs memory only where it is committed
    bool memory_shares = false;        ///< share() and open_shared() work
    bool host_loadable = false;        ///< the processor may load and store the memory
    bool is_shared_by_service = false; ///< kernels of several processes run at the same time
};

/// A piece of a reservation as another process of the node can open it: by a file descriptor, which
/// travels over a Unix socket, or, where there is none, by 64 bytes that only the vendor can read.
struct shared_part {
    std::uint64_t offset_bytes = 0;
    std::uint64_t size_bytes = 0;
    unique_fd fd;
    std::array<std::byte, 64> token{}; ///< counts only if fd is not valid
};

/// Pieces of a reservation. May be destroyed, with its descriptors, once it is opened.
struct shared_handle {
    std::uint64_t reserved_bytes = 0;
    std::vector<shared_part> parts;
};

/// A reservation of this process. One thread at a time; base and the sizes: any.
class memory {
public:
    memory() = default;
    virtual ~memory() = default;
    memory(const memory &) = delete;
    memory &operator=(const memory &) = delete;

    [[nodiscard]] virtual std::byte *base() const = 0;
    [[nodiscard]] virtual std::size_t reserved_bytes() const = 0;
    [[nodiscard]] virtual std::size_t committed_bytes() const = 0;

    /// Commits at least [offset_bytes, offset_bytes + nbytes); what is committed already stays as
    /// it is. New memory has any contents. Each stretch that was missing becomes a part to share:
    /// few large steps. Errors: OMPX_ERR_RANGE past the reservation, OMPX_ERR_NOMEM; stretches
    /// before the one that failed stay.
    virtual status commit(std::size_t offset_bytes, std::size_t nbytes) = 0;

    [[nodiscard]] virtual std::size_t num_parts() const = 0;
    static constexpr std::size_t all_parts = std::numeric_limits<std::size_t>::max();
    /// The committed parts but the first `num_known`, at most `max_parts`, in the order in which
    /// they were committed. Blocks shortly. OMPX_ERR_UNSUPPORTED: not here.
    virtual result<shared_handle> share(std::size_t num_known, std::size_t max_parts) = 0;
};

/// Memory of another process, mapped here; destroying it ends the mapping. The owner must keep the
/// memory until then. One thread at a time.
class peer_memory {
public:
    peer_memory() = default;
    virtual ~peer_memory() = default;
    peer_memory(const peer_memory &) = delete;
    peer_memory &operator=(const peer_memory &) = delete;

    /// Where the owner's base lies in this process.
    [[nodiscard]] virtual std::byte *base() const = 0;
    [[nodiscard]] virtual std::size_t mapped_bytes() const = 0;
    /// Maps what the owner has added. OMPX_ERR_ARG: a part overlaps another or the range's end.
    virtual status map_more(const shared_handle &added) = 0;
};

/// How arrays are combined, element by element.
struct reduction {
    ompx_type_t type = 0;
    ompx_op_t op = 0;
    std::size_t divisor = 1; ///< of OMPX_AVG: the sum is divided by it
};

/// Copies and reductions in order. One thread at a time.
class queue {
public:
    queue() = default;
    virtual ~queue() = default; ///< of a queue that is idle or has failed
    queue(const queue &) = delete;
    queue &operator=(const queue &) = delete;

    /// Between any two of device memory, peer memory and host memory; from or to memory of other
    /// devices only if they can be reached. Returns at once where the device can, which it can for
    /// pinned host memory. Both ranges stay valid until the queue is idle.
    virtual status copy(void *dst, const void *src, std::size_t nbytes) = 0;
    /// dst[i] = sources[0][i] op sources[1][i] op ... for i < count, combined in this order and
    /// with the bits that the collectives' loops for the processor give. There are 1 to
    /// most_sources of them; dst may be one, and overlaps no other. All of it in memory that copies
    /// of this queue reach on devices. The rest as of copies. OMPX_ERR_UNSUPPORTED: see
    /// backend::can_reduce.
    virtual status reduce(const reduction &how, void *dst, std::span<const void *const> sources,
                          std::size_t count);
    static constexpr std::size_t most_sources = 64;
    /// Whether all work is complete and visible; does not block. An error is about one part of it,
    /// and the queue is of no use afterwards.
    virtual result<bool> is_idle() = 0;
    /// Blocks until it is idle. Without limit of time: a device that hangs is ended by its driver,
    /// with an error here; who has to look at other things meanwhile asks is_idle instead.
    virtual status wait() = 0;
    /// The vendor's stream, for another library of the vendor to put work on; is_idle and wait are
    /// about that work as well. Null: the backend has no streams.
    [[nodiscard]] virtual void *native_stream() const { return nullptr; }
};

/// Makes a device the calling thread's own while it lives, as libraries of the vendor expect it.
/// Scopes of a thread end in the opposite order of their beginning, on that thread.
class current_scope {
public:
    current_scope() = default;
    virtual ~current_scope() = default;
    current_scope(const current_scope &) = delete;
    current_scope &operator=(const current_scope &) = delete;
};

/// Owner of pinned memory, or of its being pinned.
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

/// Every call that takes a device answers OMPX_ERR_ARG for one that does not exist.
class backend {
public:
    backend() = default;
    virtual ~backend() = default;
    backend(const backend &) = delete;
    backend &operator=(const backend &) = delete;

    [[nodiscard]] virtual const char *name() const = 0; ///< "host", "cuda", "hip"
    [[nodiscard]] virtual int num_devices() const = 0;  ///< at least 1
    /// Opens a context on the device for a moment, unless there is one.
    virtual result<properties> describe(device_id device) = 0;
    /// properties::uuid, without a context.
    virtual result<device_uuid> uuid_of(device_id device) = 0;

    /// Nothing is committed yet where memory_grows says so, else all of it. The size is rounded up
    /// to what the device can map.
    virtual result<std::unique_ptr<memory>> reserve(device_id device, std::size_t max_bytes) = 0;
    /// Maps what another process of the node shares, for copies by `device`.
    virtual result<std::unique_ptr<peer_memory>> open_shared(device_id device,
                                                             const shared_handle &handle) = 0;

    /// Whether queues of `device` can copy from and to memory of `other`. The first call that says
    /// so opens that memory to `device`, what is reserved later included.
    virtual result<bool> can_reach(device_id device, device_id other) = 0;

    virtual result<std::unique_ptr<queue>> make_queue(device_id device) = 0;
    /// Whether queues of `device` reduce so. The first question may take a second, in which the
    /// driver compiles; it opens a context.
    virtual bool can_reduce(device_id device, const reduction &how);
    /// For calls of the vendor's other libraries. OMPX_ERR_UNSUPPORTED: the backend has none.
    virtual result<std::unique_ptr<current_scope>> make_current(device_id device);
    /// For copies of every device of the backend.
    virtual result<pinned_memory> allocate_pinned(std::size_t nbytes) = 0;
    /// The same for host memory that is there and stays longer than what is returned.
    virtual result<pinned_memory> pin(void *base, std::size_t nbytes) = 0;
    /// The device in whose memory the address lies, whoever has allocated it; none for host memory.
    [[nodiscard]] virtual std::optional<device_id> owner_of(const void *address) = 0;
};

/// Where a vendor's library is looked for.
struct library_path_option {
    std::string path; ///< empty: under its usual names, where the system looks for libraries
};

/// The devices that CUDA's driver shows. OMPX_ERR_UNSUPPORTED says what is missing: the library,
/// one of its functions, or a device. Starts no context on any device.
result<std::unique_ptr<backend>> create_cuda(const library_path_option &option);
/// The same of HIP.
result<std::unique_ptr<backend>> create_hip(const library_path_option &option);

/// NUMA node of each device that create_cuda would show, [device], -1 where nobody says. Starts no
/// context. Errors as there.
result<std::vector<int>> numa_nodes_of_cuda(const library_path_option &option);
/// The same of HIP.
result<std::vector<int>> numa_nodes_of_hip(const library_path_option &option);

/// A part of host memory that stands for a device's memory. It stays the caller's.
struct host_range {
    void *base = nullptr;
    std::size_t reserved_bytes = 0;
};
/// One device per range; there must be one at least (OMPX_ERR_ARG).
result<std::unique_ptr<backend>> create_host(const std::vector<host_range> &ranges);

/// For backends: the error about a device that does not exist.
status check_device(const backend &of, device_id device);
/// For backends: the error about a range that is not in the reservation.
error outside(const memory &of, std::size_t offset_bytes, std::size_t nbytes);

} // namespace diomp::device
