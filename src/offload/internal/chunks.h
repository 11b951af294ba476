// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Cuts transfers through host memory into chunks, and keeps several of them in flight. Runs of a
// box, of any length, are packed, so that a chunk holds as many as fit.
#pragma once

#include "base/result.h"
#include "rma/box.h"
#include "rma/path.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace diomp::offload {

/// Large enough that the round trip to the owner is small compared with the transfer of a chunk.
inline constexpr std::size_t chunk_bytes = std::size_t{512} << 10;
/// Chunks that a requester has in flight.
inline constexpr std::size_t pipeline_depth = 4;

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

/// The runs in a chunk.
struct packed_runs {
    std::vector<rma::run> runs; ///< in order, with offsets in both arrays
    std::size_t nbytes = 0;

    /// The runs between their data in a chunk (the remote side) and the local array.
    [[nodiscard]] std::vector<rma::run> to_local(std::size_t data_begin) const;
    /// The runs between the remote array and their data in a chunk (the local side).
    [[nodiscard]] std::vector<rma::run> to_remote(std::size_t data_begin) const;
};

/// Cuts runs into batches of at most one chunk, each run with `overhead` additional bytes.
std::vector<packed_runs> pack(std::span<const rma::run> runs, std::size_t overhead);

} // namespace diomp::offload
