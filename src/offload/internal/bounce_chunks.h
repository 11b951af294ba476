// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared parts of transfers through host memory (bounce*.cpp): the chunk size, the pipeline and its
// pinned buffers.
#pragma once

#include "offload/internal/bounce.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <mutex>
#include <type_traits>
#include <utility>

namespace diomp::offload {

/// Large enough that the round trip to the owner is small compared with the transfer of a chunk.
inline constexpr std::size_t chunk_bytes = std::size_t{512} << 10;
/// Chunks that a requester has in flight.
inline constexpr std::size_t pipeline_depth = 4;
/// One chunk is copied by the device while the other is produced or consumed.
inline constexpr std::size_t pinned_pair_chunks = 2;

inline void keep_first_error(status &outcome, status later) {
    if (outcome) {
        outcome = std::move(later);
    }
}

struct chunk {
    std::size_t begin; ///< offset in the transfer
    std::size_t nbytes;
    std::byte *slot;
};

/// Cuts a transfer into chunks, each with a slot of `buffer`, and keeps `num_slots` of them in
/// flight. `start` begins a chunk and returns a handle, which `wait` waits for; `finish` completes
/// the chunk. After an error, chunks in flight are still waited for, since they use their slots.
template <typename Start, typename Wait, typename Finish>
status run_pipeline(std::byte *buffer, std::size_t num_slots, std::size_t nbytes,
                    const Start &start, const Wait &wait, const Finish &finish) {
    struct started {
        chunk which;
        std::decay_t<decltype(start(chunk()).take())> what;
    };
    std::deque<started> in_flight;
    status outcome;
    auto const complete_oldest = [&] {
        started const oldest = std::move(in_flight.front());
        in_flight.pop_front();
        keep_first_error(outcome, wait(oldest.which, oldest.what));
        if (outcome) {
            outcome = finish(oldest.which);
        }
    };
    for (std::size_t started_bytes = 0; started_bytes < nbytes && outcome.ok();) {
        if (in_flight.size() == num_slots) {
            complete_oldest();
            continue;
        }
        std::size_t const slot = started_bytes / chunk_bytes % num_slots;
        chunk const next{started_bytes, std::min(chunk_bytes, nbytes - started_bytes),
                         buffer + slot * chunk_bytes};
        if (auto made = start(next)) {
            in_flight.push_back({next, made.take()});
            started_bytes += next.nbytes;
        } else {
            outcome = made.take_failure();
        }
    }
    while (!in_flight.empty()) {
        complete_oldest();
    }
    return outcome;
}

/// A lease on two pinned chunks; the destructor returns the memory to the free list.
struct bounce::pinned_pair {
    pinned_pair(bounce &owner, const device::backend &of, device::pinned_memory &&memory)
        : owner_(owner), of_(of), memory_(std::move(memory)) {}
    ~pinned_pair() {
        if (memory_.base() != nullptr) {
            std::lock_guard const guard(owner_.pinned_mutex_);
            owner_.free_pairs_.emplace_back(&of_, std::move(memory_));
        }
    }
    pinned_pair(pinned_pair &&other) = default; // the source keeps no memory
    pinned_pair &operator=(pinned_pair &&) = delete;

    [[nodiscard]] std::byte *base() const { return memory_.base(); }

private:
    bounce &owner_;
    const device::backend &of_;
    device::pinned_memory memory_;
};

} // namespace diomp::offload
