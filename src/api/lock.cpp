// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sync/lock.h"

#include "api/internal/state.h"
#include "diomp/sync.h"
#include "rma/rma.h"

using namespace diomp;

namespace {

using lock_call = status (sync::locks::*)(world_rank, sync::lock_space);

int lock_function(const char *function, const void *site, int rank, sync::lock_space space,
                  lock_call method, bool fence_first) {
    return api::call(
        function, site, [&] { return fmt::format("rank={}", rank); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            DIOMP_TRY(api::check_rank(running, rank));
            if (fence_first) {
                DIOMP_TRY(running.transfers().fence());
            }
            stats.peer = rank;
            return (running.locks().*method)(world_rank{rank}, space);
        });
}

int try_lock_function(const char *function, const void *site, int rank, sync::lock_space space) {
    bool taken = false;
    int const outcome = api::call(
        function, site, [&] { return fmt::format("rank={}", rank); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            DIOMP_TRY(api::check_rank(running, rank));
            auto granted = running.locks().try_acquire(world_rank{rank}, space);
            DIOMP_TRY(granted);
            taken = granted.value();
            stats.peer = rank;
            return {};
        });
    return outcome == OMPX_SUCCESS && !taken ? OMPX_ERR_BUSY : outcome;
}

} // namespace

extern "C" {

int ompx_lock(int rank) noexcept {
    return lock_function("ompx_lock", DIOMP_SITE, rank, sync::lock_space::ranks,
                         &sync::locks::acquire, false);
}

int ompx_unlock(int rank) noexcept {
    return lock_function("ompx_unlock", DIOMP_SITE, rank, sync::lock_space::ranks,
                         &sync::locks::release, true);
}

int ompx_try_lock(int rank) noexcept {
    return try_lock_function("ompx_try_lock", DIOMP_SITE, rank, sync::lock_space::ranks);
}

int ompx_lockt(int rank) noexcept {
    return lock_function("ompx_lockt", DIOMP_SITE, rank, sync::lock_space::threads,
                         &sync::locks::acquire, false);
}

int ompx_unlockt(int rank) noexcept {
    return lock_function("ompx_unlockt", DIOMP_SITE, rank, sync::lock_space::threads,
                         &sync::locks::release, true);
}

int ompx_try_lockt(int rank) noexcept {
    return try_lock_function("ompx_try_lockt", DIOMP_SITE, rank, sync::lock_space::threads);
}

} // extern "C"
