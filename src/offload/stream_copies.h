// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Copies by streams of this process's accelerators that the caller waits for, directly or, where a
// stream cannot access the other side, chunk by chunk through pinned host memory.
#pragma once

#include "base/function_ref.h"
#include "base/result.h"
#include "offload/accelerators.h"
#include "offload/internal/pinned_host.h"
#include "rma/box.h"
#include "rma/path.h"

#include <cstddef>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace diomp::memory {
class segment;
}

namespace diomp::messaging {
class engine;
}

namespace diomp::offload {

/// A pool of pinned memory for pairs of chunks. Thread-safe.
class pinned_pool {
    using pair = std::pair<const device::backend *, device::pinned_memory>;

public:
    /// One chunk is copied by the device while the other is produced or consumed.
    static constexpr std::size_t num_chunks = 2;

    /// Returns the memory to the pool.
    class pinned_pair {
    public:
        pinned_pair(pinned_pool &of, pair &&given) : of_(of), given_(std::move(given)) {}
        ~pinned_pair() {
            if (given_.second.base() != nullptr) {
                std::lock_guard const guard(of_.mutex_);
                of_.free_.push_back(std::move(given_));
            }
        }
        pinned_pair(pinned_pair &&other) = default; // the source keeps no memory
        pinned_pair &operator=(pinned_pair &&) = delete;

        [[nodiscard]] std::byte *base() const { return given_.second.base(); }

    private:
        pinned_pool &of_;
        pair given_;
    };
    result<pinned_pair> acquire(const accelerator &of);

private:
    std::mutex mutex_; ///< leaf lock
    std::vector<pair> free_;
};

/// Thread-safe.
class stream_copies {
public:
    /// For `min_pin_bytes` see pinned_host.
    stream_copies(messaging::engine &engine, memory::segment &host, std::size_t min_pin_bytes)
        : engine_(engine), segment_pins_(host, min_pin_bytes) {}

    /// Waits for a copy in the stream pool of `by`; serves messages meanwhile.
    status wait_for(const accelerator &by, const device::ticket &of);
    /// Copies on a queue of `by` and waits for completion.
    status copy(const accelerator &by, void *dst, const void *src, std::size_t nbytes);
    /// Copies runs between two arrays concurrently on queues of `by`.
    status copy_runs(rma::direction dir, const accelerator &by, std::byte *there, std::byte *here,
                     std::span<const rma::run> runs);

    /// Moves one chunk of nbytes between host memory at `host` and the other side, at `done` bytes
    /// from the beginning of the transfer. `host` may be reused on return.
    using chunk_function =
        function_ref<status(std::byte *host, std::size_t done, std::size_t nbytes)>;
    /// Passes the source chunk by chunk to `consume`, while the device copies the next chunk out.
    status copy_out(const accelerator &from, const std::byte *src, std::size_t nbytes,
                    chunk_function consume);
    /// Fills the destination with chunks from `produce`, while the device copies the previous chunk
    /// in.
    status copy_in(const accelerator &to, std::byte *dst, std::size_t nbytes,
                   chunk_function produce);
    /// Moves runs between the remote array and packed data at `host`.
    using packed_function = function_ref<status(std::byte *host, std::span<const rma::run> packed)>;
    /// Transfers runs between an accelerator and the array that `move` puts to or gets from, packed
    /// in host memory.
    status copy_runs_through_host(rma::direction dir, const device_ptr &here,
                                  std::span<const rma::run> runs, packed_function move);

    [[nodiscard]] pinned_pool &pinned() { return pinned_; }
    /// Pins of the own segment, see pinned_host::pin_allocation.
    [[nodiscard]] pinned_host &segment_pins() { return segment_pins_; }

private:
    messaging::engine &engine_;
    pinned_pool pinned_;
    pinned_host segment_pins_;
};

} // namespace diomp::offload
