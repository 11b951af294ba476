// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The data of the fast path: filled at the start, and updated when memory changes.
#include "api/internal/state.h"
#include "base/sanitizer.h"
#include "memory/counterparts.h"
#include "memory/memory.h"
#include "memory/segment.h"
#include "rma/rma.h"
#include "transport/conduit.h"

#include <mutex>

namespace diomp::api {

fast_view g_fast;

void fill_fast_view(runtime::runtime &running) {
    auto const &job = running.job();
    auto &transport = running.connection().transport();
    std::byte *const own = transport.direct_base(job.rank);
    for (std::size_t entry = 0; entry < fast_view::num_entries; ++entry) {
        g_fast.rank[entry] =
            ~static_cast<std::int32_t>(entry); // a number that does not map to this entry
    }
    for (std::size_t local = job.local_ranks.size(); local-- > 0;) {
        world_rank const rank = job.local_ranks[local];
        std::byte *const slot = transport.direct_base(rank);
        if (slot != nullptr) {
            g_fast.distance[fast_view::entry_of(rank.value())] = slot - own;
            g_fast.rank[fast_view::entry_of(rank.value())] = rank.value();
        }
    }
    g_fast.own_base = reinterpret_cast<std::uintptr_t>(running.segment().base());
    g_fast.store_sleepers =
        transport.atomics() == nullptr ? &transport.waits().store_sleepers() : nullptr;
    g_fast.stream_threshold = running.transfers().stream_threshold();
    refresh_fast_view(running);
}

void refresh_fast_view(runtime::runtime &running) {
    static constinit std::mutex mutex; // the last caller sees what the others have changed
    std::lock_guard const guard(mutex);
    bool const plain = !running.observes() && running.values().memory.check == check_level::none &&
                       !has_address_sanitizer() &&
                       g_recordings.load(std::memory_order_relaxed) == 0;
    g_fast.is_plain.store(plain, std::memory_order_relaxed);
    g_fast.extent.store(plain ? running.segment().symmetric_extent() : 0,
                        std::memory_order_relaxed);
    g_fast.fence_orders_only.store(plain && running.transfers().all_direct(),
                                   std::memory_order_relaxed);
}

void refresh_moved_data(runtime::runtime &running) {
    auto const moved = running.space().counterparts().longest_moved();
    if (!moved) {
        g_fast.moved_extent.store(0, std::memory_order_relaxed);
        return;
    }
    std::uintptr_t const distance = g_fast.own_base + moved->offset - moved->base;
    if (g_fast.moved_base == 0) {
        g_fast.moved_base = moved->base;
        g_fast.moved_distance = distance;
    }
    // Threads may be reading the two, so a range elsewhere takes the slow path.
    bool const is_known = g_fast.moved_base == moved->base && g_fast.moved_distance == distance;
    g_fast.moved_extent.store(is_known ? moved->nbytes : 0, std::memory_order_release);
}

void close_fast_view() {
    g_fast.extent.store(0, std::memory_order_relaxed);
    g_fast.fence_orders_only.store(false, std::memory_order_relaxed);
    g_fast.is_plain.store(false, std::memory_order_relaxed);
}

} // namespace diomp::api
