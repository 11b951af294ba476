// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Fences and events.
#include "diomp/sync.h"

#include "api/internal/state.h"
#include "diomp/transfer.h"
#include "group/group.h"
#include "group/registry.h"
#include "messaging/engine.h"
#include "rma/copy.h"
#include "rma/event.h"
#include "rma/nonblocking_transfers.h"
#include "rma/rma.h"

using namespace diomp;

namespace {

// Slow paths are not inlined: registers saved for them would be reloaded after a fence's locked
// instruction, which takes as long as the rest of the fence.

[[gnu::noinline]] int fence_slow_path(const char *function, const void *site) {
    return api::call(
        function, site, [] { return std::string(); },
        [](runtime::runtime &running, api::call_stats &) -> status {
            return running.transfers().fence();
        });
}

[[gnu::noinline]] int fence_members(ompx_group_t group, const void *site) {
    return api::call(
        "ompx_fence", site, [&] { return fmt::format("group={}", fmt::ptr(group)); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            auto found = running.collectives().groups().find(group);
            DIOMP_TRY(found);
            stats.group = found.value()->id();
            return running.transfers().fence(found.value()->members());
        });
}

[[gnu::noinline]] int fence_rank_slow_path(int rank, const void *site) {
    return api::call(
        "ompx_fence_rank", site, [&] { return fmt::format("rank={}", rank); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            DIOMP_TRY(api::check_rank(running, rank));
            stats.peer = rank;
            return running.transfers().fence_rank(world_rank{rank});
        });
}

[[gnu::noinline]] int order_slow_path(const void *site) {
    return api::call(
        "ompx_order", site, [] { return std::string(); },
        [](runtime::runtime &running, api::call_stats &) -> status {
            return running.transfers().order();
        });
}

/// Whether the event is NULL, that is complete, and calls are not observed. Orders the program's
/// next stores after the transfer's bytes.
[[gnu::always_inline]] inline bool is_complete_inline(const ompx_event_t *event) {
    if (event == nullptr || *event != nullptr ||
        !api::g_fast.is_plain.load(std::memory_order_relaxed)) {
        return false;
    }
    std::atomic_thread_fence(std::memory_order_release);
    return true;
}

[[gnu::noinline]] int report_unknown_kind(int kind) {
    return api::fail("ompx_waitRMA", fmt::format("kind={}", kind),
                     {OMPX_ERR_ARG, "unknown kind of transfer",
                      "combine OMPX_RMA_PUT, OMPX_RMA_GET, OMPX_RMA_ATOMIC"});
}

[[gnu::always_inline]] inline int fence_function(const char *function, const void *site) {
    if (api::g_fast.fence_orders_only.load(std::memory_order_relaxed)) [[likely]] {
        rma::full_fence();
        return OMPX_SUCCESS;
    }
    return fence_slow_path(function, site);
}

[[gnu::noinline]] int test_slow_path(ompx_event_t *event, int *done, const void *site) noexcept {
    return api::call(
        "ompx_event_test", site, [&] { return fmt::format("event={}", fmt::ptr(event)); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            DIOMP_TRY(api::check_pointer(event, "event"));
            DIOMP_TRY(api::check_pointer(done, "done"));
            if (*event == nullptr) {
                *done = 1;
                return {};
            }
            DIOMP_TRY(ompx_event::check(*event));
            *done = 1;
            running.transfers().nonblocking().advance(**event);
            if (!(*event)->is_done()) {
                running.connection().engine().poll();
                running.transfers().nonblocking().advance(**event);
            }
            if (!(*event)->is_done()) {
                *done = 0;
                return {};
            }
            status outcome = std::move((*event)->outcome);
            (*event)->release_by_program();
            *event = nullptr;
            return outcome;
        });
}

[[gnu::noinline]] int wait_slow_path(ompx_event_t *event, const void *site) noexcept {
    return api::call(
        "ompx_event_wait", site, [&] { return fmt::format("event={}", fmt::ptr(event)); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            DIOMP_TRY(api::check_pointer(event, "event"));
            if (*event == nullptr) {
                return {};
            }
            DIOMP_TRY(ompx_event::check(*event));
            DIOMP_TRY(running.transfers().nonblocking().wait(**event));
            status outcome = std::move((*event)->outcome);
            (*event)->release_by_program();
            *event = nullptr;
            return outcome;
        });
}

} // namespace

extern "C" {

int ompx_fence(void) noexcept { return fence_function("ompx_fence", DIOMP_SITE); }

// Messages name what programs write: in C and C++ ompx_fence(group), a macro or an overload.
int ompx_fence_group(ompx_group_t group) noexcept {
    return group == nullptr ? fence_function("ompx_fence", DIOMP_SITE)
                            : fence_members(group, DIOMP_SITE);
}

int ompx_fence_rank(int rank) noexcept {
    if (api::g_fast.fence_orders_only.load(std::memory_order_relaxed) &&
        api::g_fast.rank[api::fast_view::entry_of(rank)] == rank) [[likely]] {
        rma::full_fence();
        return OMPX_SUCCESS;
    }
    return fence_rank_slow_path(rank, DIOMP_SITE);
}

int ompx_order(void) noexcept {
    if (api::g_fast.fence_orders_only.load(std::memory_order_relaxed)) [[likely]] {
        std::atomic_thread_fence(std::memory_order_release);
        return OMPX_SUCCESS;
    }
    return order_slow_path(DIOMP_SITE);
}

int ompx_waitALLRMA(void) noexcept { return fence_function("ompx_waitALLRMA", DIOMP_SITE); }

int ompx_waitRMA(int kind) noexcept {
    if ((kind & ~OMPX_RMA_ALL) != 0 || kind == 0) [[unlikely]] {
        return report_unknown_kind(kind);
    }
    return fence_function("ompx_waitRMA", DIOMP_SITE);
}

int ompx_event_test(ompx_event_t *event, int *done) noexcept {
    if (done != nullptr && is_complete_inline(event)) {
        *done = 1;
        return OMPX_SUCCESS;
    }
    return test_slow_path(event, done, DIOMP_SITE);
}

int ompx_event_wait(ompx_event_t *event) noexcept {
    return is_complete_inline(event) ? OMPX_SUCCESS : wait_slow_path(event, DIOMP_SITE);
}

// NOLINTBEGIN(readability-identifier-naming): called by inline functions of diomp.h
int ompx_event_test_started_(ompx_event_t *event, int *done) noexcept {
    return test_slow_path(event, done, DIOMP_SITE);
}

int ompx_event_wait_started_(ompx_event_t *event) noexcept {
    return wait_slow_path(event, DIOMP_SITE);
}
// NOLINTEND(readability-identifier-naming)

} // extern "C"
