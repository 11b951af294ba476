// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "offload/sides.h"
#include "offload/stream_copies.h"
#include "rma/path.h"

#include <span>

namespace diomp::offload {

class device_segment;
class device_segments;
struct transfer_start;

/// Transfers with memory of a remote processor on at least one side. Between two of them the
/// session of the own one copies; between one and memory that this process can load, this process;
/// to and from other host memory and GPUs the data passes through this process. Transfers between
/// GPUs of services, which their sessions make. Thread-safe.
class remote_mover {
public:
    remote_mover(const device_segments &segments, stream_copies &copies)
        : segments_(segments), copies_(copies) {}

    /// Moves runs between memory of this process and the remote side of the transfer, which is not
    /// a remote processor.
    using host_function = stream_copies::packed_function;
    /// Blocks; with `start` and a single run only where this process or the device of one side
    /// cannot make the transfer alone. Errors: OMPX_ERR_PEER if a device is lost; those of
    /// `move_host`.
    result<rma::path> move(rma::direction dir, const remote_side &there, const local_side &here,
                           std::span<const rma::run> runs, host_function move_host,
                           transfer_start *start);

    /// The address of a side that is in a segment of this rank's devices; otherwise null. Addresses
    /// of remote processors are valid in the whole job.
    [[nodiscard]] const std::byte *own_memory_of(const remote_side &there) const;
    /// The own segment if the sides are GPUs of services whose sessions make the transfer;
    /// otherwise null.
    [[nodiscard]] const device_segment *segment_of_sessions(const remote_side &there,
                                                            const device_ptr &here) const;
    /// By the sessions; `own`: segment_of_sessions(). Blocks until it is complete. Errors: also
    /// those of the session.
    result<rma::path> move_by_sessions(rma::direction dir, world_rank rank,
                                       const remote_side &there, const device_segment &own,
                                       const device_ptr &here, std::span<const rma::run> runs);

private:
    status move_own_gpu(rma::direction dir, std::uint64_t there, const device_ptr &here,
                        std::span<const rma::run> runs);
    status move_through_process(rma::direction dir, const local_side &here,
                                std::span<const rma::run> runs, host_function move_host);

    const device_segments &segments_;
    stream_copies &copies_;
};

} // namespace diomp::offload
