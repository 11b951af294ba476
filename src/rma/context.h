// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The object behind an ompx_context_t: implicit operations that are completed apart from all
// others.
#pragma once

#include "base/handle_table.h"
#include "base/ids.h"
#include "base/result.h"
#include "diomp/types.h"
#include "rma/internal/implicit_ops.h"

#include <atomic>
#include <cstddef>
#include <vector>

/// One thread at a time.
struct ompx_context {
    diomp::rma::implicit_ops transfers;
    std::vector<diomp::world_rank> unflushed; ///< peers of puts whose flush has not started
    /// Atomics and puts with signals; some may be complete.
    std::vector<ompx_event_t> events;
    std::size_t max_events = min_events; ///< complete ones are sought beyond this number
    diomp::status failure;               ///< the first one of `events`, for the next fence

    std::atomic<bool> is_in_use{false}; ///< by a call

    static constexpr std::size_t min_events = 64;
};

namespace diomp::rma {

/// The contexts of this rank.
struct context_table : handle_table<ompx_context, ompx_context_t, 0xd10e> {};

} // namespace diomp::rma
