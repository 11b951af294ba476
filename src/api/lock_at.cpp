// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Locks at an address in memory that all ranks have.
#include "api/internal/state.h"
#include "diomp/lock.h"
#include "group/group.h"
#include "group/registry.h"
#include "memory/counterparts.h"
#include "memory/memory.h"
#include "rma/rma.h"
#include "sync/call_signature.h"
#include "sync/queue_lock.h"

#include <cstring>
#include <optional>

using namespace diomp;

namespace {

/// Where a lock lies, equally on all ranks.
struct lock_position {
    std::uint64_t offset = 0;
    std::uint64_t nbytes = 0; ///< from there on
    bool is_registered = false;
};

std::optional<lock_position> find_lock(runtime::runtime &running, const ompx_lock_t *lock) {
    std::uint64_t const extent = running.segment().symmetric_extent();
    auto const offset = running.space().own_offset(lock);
    if (offset && *offset < extent) {
        return lock_position{*offset, extent - *offset, false};
    }
    auto const found =
        running.space().counterparts().position_of(reinterpret_cast<std::uintptr_t>(lock));
    return found ? std::optional(lock_position{found->offset, found->nbytes, true}) : std::nullopt;
}

/// Where count locks are, in memory that all ranks have.
result<lock_position> check_locks(runtime::runtime &running, const ompx_lock_t *locks,
                                  std::size_t count) {
    DIOMP_TRY(api::check_pointer(locks, "the lock"));
    if (reinterpret_cast<std::uintptr_t>(locks) % sizeof(*locks) != 0) {
        return error(OMPX_ERR_ARG, "a lock is aligned to its 8 bytes",
                     "declare it as ompx_lock_t, or align the allocation");
    }
    auto const position = find_lock(running, locks);
    if (!position || count > position->nbytes / sizeof(*locks)) {
        return error(OMPX_ERR_ADDRESS, "the lock is not in memory that all ranks have",
                     "allocate it with ompx_symmetric_mem_alloc, or register its memory with "
                     "ompx_register_symmetric, on all ranks");
    }
    return *position;
}

sync::queue_lock make_lock(runtime::runtime &running, ompx_lock_t *lock,
                           const lock_position &position) {
    using how = sync::queue_lock::granted_by;
    auto const number = position.offset / sizeof(*lock);
    world_rank const home{static_cast<int>(number % static_cast<unsigned>(running.job().size))};
    bool const by_store = running.transfers().all_direct() && !position.is_registered;
    return {
        running.connection().engine(),       running.transfers(), running.job().rank, home, lock,
        by_store ? how::store : how::message};
}

std::string describe(const ompx_lock_t *lock) { return fmt::format("lock={}", fmt::ptr(lock)); }

/// Runs then(queue_lock, runtime) -> status.
template <typename Then>
int use_lock(const char *function, const void *site, ompx_lock_t *lock, Then &&then) {
    return api::call(
        function, site, [&] { return describe(lock); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            auto position = check_locks(running, lock, 1);
            DIOMP_TRY(position);
            auto found = make_lock(running, lock, position.value());
            return then(found, running);
        });
}

} // namespace

extern "C" {

int ompx_lock_at_init(ompx_lock_t *locks, size_t count) noexcept {
    return api::call(
        "ompx_lock_at_init", DIOMP_SITE,
        [&] { return fmt::format("locks={}, count={}", fmt::ptr(locks), count); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            DIOMP_TRY(api::check_count(count, sizeof(*locks)));
            if (count > 0) {
                DIOMP_TRY(check_locks(running, locks, count));
                std::memset(static_cast<void *>(locks), 0, count * sizeof(*locks));
            }
            DIOMP_TRY(running.transfers().fence_before_barrier());
            auto &world = running.collectives().groups().world();
            auto const call_lock = world.lock_calls();
            sync::call_signature call;
            call.what = sync::operation::barrier;
            return world.arrive_and_wait(call);
        });
}

int ompx_lock_at(ompx_lock_t *lock) noexcept {
    return use_lock("ompx_lock_at", DIOMP_SITE, lock,
                    [](sync::queue_lock &found, runtime::runtime &) { return found.acquire(); });
}

int ompx_unlock_at(ompx_lock_t *lock) noexcept {
    return use_lock("ompx_unlock_at", DIOMP_SITE, lock,
                    [](sync::queue_lock &found, runtime::runtime &running) -> status {
                        DIOMP_TRY(running.transfers().fence());
                        return found.release();
                    });
}

int ompx_try_lock_at(ompx_lock_t *lock) noexcept {
    bool is_taken = false;
    int const outcome = use_lock("ompx_try_lock_at", DIOMP_SITE, lock,
                                 [&](sync::queue_lock &found, runtime::runtime &) -> status {
                                     auto taken = found.try_acquire();
                                     DIOMP_TRY(taken);
                                     is_taken = taken.value();
                                     return {};
                                 });
    return outcome == OMPX_SUCCESS && !is_taken ? OMPX_ERR_BUSY : outcome;
}

} // extern "C"
