// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One-sided operations on segments of peers that are not direct. A network implements the first
// interface, and those of the others that it supports. All calls are thread-safe.
#pragma once

#include "transport/types.h"

namespace diomp::transport {

class rma_transport {
public:
    virtual ~rma_transport() = default;

    /// Starts to copy `nbytes` from `source` to an address in the peer's segment; the caller has
    /// checked the range. Returns with `source_free` unchanged if the source can be reused already.
    /// May wait for space in the send queue, making progress; an error means that nothing was
    /// started.
    virtual status put(world_rank peer, std::uint64_t remote_address, const void *source,
                       std::size_t nbytes, completion &source_free) = 0;
    /// Starts to copy from an address in the peer's segment. `done` counts the arrival of the data.
    virtual status get(world_rank peer, std::uint64_t remote_address, void *destination,
                       std::size_t nbytes, completion &done) = 0;
    /// Starts the completion of all puts that the calling process has started to `peer`, or to all
    /// peers: `done` counts until their bytes are visible at the target. Costs nothing if no put is
    /// in flight.
    virtual status flush(world_rank peer, completion &done) = 0;
    virtual status flush_all(completion &done) = 0;
};

/// Transfers of all rows of a box in one operation; the addresses are those of the first row.
class row_transfers {
public:
    virtual ~row_transfers() = default;

    /// The destinations of the rows do not overlap. false: nothing was started; for this peer and
    /// this row length, one put per row is at least as fast.
    virtual result<bool> put_rows(world_rank peer, std::uint64_t remote_address, const void *source,
                                  const rows &shape, completion &source_free) = 0;
    /// false: nothing was started; one get per row is at least as fast.
    virtual result<bool> get_rows(world_rank peer, std::uint64_t remote_address, void *destination,
                                  const rows &shape, completion &done) = 0;
};

/// Atomic operations that the network executes for every rank of the job.
class network_atomics {
public:
    virtual ~network_atomics() = default;

    /// Starts an operation on an aligned word in the segment of any rank, including the caller's
    /// own. It is atomic with respect to all operations of the job through this call, and to no
    /// others. The old value is written to `result`, and `done` counts that. If `result` is
    /// nullptr, `done` is not used, and a flush of the target rank completes the operation as it
    /// does a put, except on the calling rank itself.
    virtual status atomic(world_rank peer, std::uint64_t remote_address, const atomic_call &call,
                          void *result, completion &done) = 0;
};

/// Transfers with device memory on one side or both.
class device_transfers {
public:
    virtual ~device_transfers() = default;

    /// Whether the network can access this kind of memory of this process at any address.
    [[nodiscard]] virtual bool supports_memory_kind(memory_kind kind) const = 0;
    /// Whether the network can access this range. Some networks access device memory only in ranges
    /// that were registered at creation (conduit_options::make_device_ranges).
    [[nodiscard]] virtual bool supports_memory_range(const memory_range &own) const = 0;
    /// Whether put and get support this pair: a range of the peer that the peer's own network can
    /// access, and a local range.
    [[nodiscard]] virtual bool can_transfer(world_rank peer, const memory_range &remote,
                                            const memory_range &local) const = 0;
    /// put and get between ranges for which can_transfer() is true; the remote address need not be
    /// in the segment. The network need not check that; one that does returns
    /// OMPX_ERR_UNSUPPORTED.
    virtual status put_device_memory(world_rank peer, std::uint64_t remote_address,
                                     const void *source, std::size_t nbytes, memory_kinds kinds,
                                     completion &source_free) = 0;
    virtual status get_device_memory(world_rank peer, std::uint64_t remote_address,
                                     void *destination, std::size_t nbytes, memory_kinds kinds,
                                     completion &done) = 0;
    /// Registers a function that makes a device context current in the network's threads. Call
    /// before the first transfer of device memory. The first registration counts, until an empty
    /// function removes it.
    virtual void bind_device_context(const device_context_binder &binder) = 0;
};

} // namespace diomp::transport
