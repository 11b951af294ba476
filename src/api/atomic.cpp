// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Remote atomics. The fast path operates on integers in symmetric memory of directly mapped ranks;
// all other operations, and all errors, take the slow path.
#include "diomp/atomic.h"

#include "api/internal/contexts.h"
#include "api/internal/direct_address.h"
#include "base/constant_names.h"
#include "diomp/nonblocking.h"
#include "messaging/engine.h"
#include "rma/atomics.h"
#include "rma/integer_atomics.h"
#include "rma/rma.h"

#include <cstring>

using namespace diomp;
using api::g_fast;

namespace {

std::string describe_atomic(int rank, const void *target, ompx_type_t type) {
    return fmt::format("rank={}, target={}, type={}", rank, target, type_name(type));
}

std::string describe_fetch(int rank, const void *target, ompx_type_t type, ompx_op_t op) {
    return fmt::format("{}, op={}", describe_atomic(rank, target, type), operator_name(op));
}

/// The arguments of both forms of a fetching atomic.
status check_fetch(runtime::runtime &running, int rank, const void *target, const void *operand,
                   ompx_op_t op) {
    DIOMP_TRY(api::check_rank(running, rank));
    DIOMP_TRY(api::check_pointer(target, "target"));
    return op == OMPX_NO_OP ? status() : api::check_pointer(operand, "operand");
}

/// The arguments of both forms of compare and swap.
status check_compare_swap(runtime::runtime &running, int rank, const void *target,
                          const void *expected, const void *desired) {
    DIOMP_TRY(api::check_rank(running, rank));
    DIOMP_TRY(api::check_pointer(target, "target"));
    DIOMP_TRY(api::check_pointer(expected, "expected"));
    return api::check_pointer(desired, "desired");
}

[[gnu::noinline]] int fetch_slow_path(int rank, void *target, const void *operand, void *result,
                                      ompx_type_t type, ompx_op_t op, const void *site) noexcept {
    return api::call(
        "ompx_atomic_fetch", site, [&] { return describe_fetch(rank, target, type, op); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            DIOMP_TRY(check_fetch(running, rank, target, operand, op));
            stats = {"", ompx_type_size(type), rank};
            return running.transfers().atomics().fetch(world_rank{rank}, target, operand, result,
                                                       type, op);
        });
}

[[gnu::noinline]] int compare_swap_slow_path(int rank, void *target, const void *expected,
                                             const void *desired, void *result, ompx_type_t type,
                                             const void *site) noexcept {
    return api::call(
        "ompx_atomic_compare_swap", site, [&] { return describe_atomic(rank, target, type); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            DIOMP_TRY(check_compare_swap(running, rank, target, expected, desired));
            stats = {"", ompx_type_size(type), rank};
            return running.transfers().atomics().compare_swap(world_rank{rank}, target, expected,
                                                              desired, result, type);
        });
}

[[gnu::noinline]] int wake_slow_path(int rank, const char *function, const void *site) noexcept {
    return api::call(
        function, site, [&] { return fmt::format("rank={}", rank); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            running.connection().engine().wake_for_store(world_rank{rank});
            return {};
        });
}

/// The target of an operation that may take the fast path, otherwise nullptr.
template <typename T>
[[gnu::always_inline]] inline T *direct_target(int rank, const void *target) {
    if (g_fast.store_sleepers == nullptr ||
        reinterpret_cast<std::uintptr_t>(target) % sizeof(T) != 0) {
        return nullptr;
    }
    std::byte *const direct = api::direct_address(rank, target, sizeof(T));
    return reinterpret_cast<T *>(
        direct != nullptr ? direct : api::direct_static_address(rank, target, sizeof(T)));
}

template <typename T>
[[gnu::always_inline]] inline T load(const void *from) {
    T value;
    std::memcpy(&value, from, sizeof(value));
    return value;
}

template <typename T>
[[gnu::always_inline]] inline int finish_direct(T old, void *result, int rank, const char *function,
                                                const void *site) {
    if (result != nullptr) {
        std::memcpy(result, &old, sizeof(old));
    }
    return g_fast.store_sleepers->load(std::memory_order_relaxed) == 0
               ? OMPX_SUCCESS
               : wake_slow_path(rank, function, site);
}

template <typename T>
[[gnu::always_inline]] inline int fetch(int rank, void *target, const void *operand, void *result,
                                        ompx_type_t type, ompx_op_t op, const void *site) {
    T *const cell = direct_target<T>(rank, target);
    bool const has_operand = operand != nullptr || op == OMPX_NO_OP;
    if (cell == nullptr || !rma::has_instruction(op) || !has_operand) [[unlikely]] {
        return fetch_slow_path(rank, target, operand, result, type, op, site);
    }
    T const given = op == OMPX_NO_OP ? T{} : load<T>(operand);
    return finish_direct(rma::fetch_by_instruction(cell, given, op), result, rank,
                         "ompx_atomic_fetch", site);
}

template <typename T>
[[gnu::always_inline]] inline int compare_swap(int rank, void *target, const void *expected,
                                               const void *desired, void *result, ompx_type_t type,
                                               const void *site) {
    T *const cell = direct_target<T>(rank, target);
    if (cell == nullptr || expected == nullptr || desired == nullptr) [[unlikely]] {
        return compare_swap_slow_path(rank, target, expected, desired, result, type, site);
    }
    T seen = load<T>(expected);
    std::atomic_ref<T>(*cell).compare_exchange_strong(seen, load<T>(desired));
    return finish_direct(seen, result, rank, "ompx_atomic_compare_swap", site);
}

} // namespace

extern "C" {

int ompx_atomic_fetch(int rank, void *target, const void *operand, void *result, ompx_type_t type,
                      ompx_op_t op) noexcept {
    switch (type) {
    case OMPX_INT32:
    case OMPX_UINT32:
        return fetch<std::uint32_t>(rank, target, operand, result, type, op, DIOMP_SITE);
    case OMPX_INT64:
    case OMPX_UINT64:
        return fetch<std::uint64_t>(rank, target, operand, result, type, op, DIOMP_SITE);
    default:
        return fetch_slow_path(rank, target, operand, result, type, op, DIOMP_SITE);
    }
}

int ompx_atomic_fetch_nb(int rank, void *target, const void *operand, void *result,
                         ompx_type_t type, ompx_op_t op, ompx_event_t *event) noexcept {
    return api::call(
        "ompx_atomic_fetch_nb", DIOMP_SITE, [&] { return describe_fetch(rank, target, type, op); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            DIOMP_TRY(check_fetch(running, rank, target, operand, op));
            stats = {"", ompx_type_size(type), rank};
            return running.transfers().atomics().start_fetch(world_rank{rank}, target, operand,
                                                             result, type, op, event);
        });
}

int ompx_context_atomic_fetch_nb(ompx_context_t context, int rank, void *target,
                                 const void *operand, void *result, ompx_type_t type,
                                 ompx_op_t op) noexcept {
    return api::call(
        "ompx_context_atomic_fetch_nb", DIOMP_SITE,
        [&] {
            return fmt::format("context={}, {}", fmt::ptr(context),
                               describe_fetch(rank, target, type, op));
        },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            DIOMP_TRY(check_fetch(running, rank, target, operand, op));
            stats = {"", ompx_type_size(type), rank};
            return api::start_in(running, context, [&](ompx_event_t *event) {
                return running.transfers().atomics().start_fetch(world_rank{rank}, target, operand,
                                                                 result, type, op, event);
            });
        });
}

int ompx_atomic_compare_swap(int rank, void *target, const void *expected, const void *desired,
                             void *result, ompx_type_t type) noexcept {
    switch (type) {
    case OMPX_INT32:
    case OMPX_UINT32:
    case OMPX_FLOAT: // compared bitwise
        return compare_swap<std::uint32_t>(rank, target, expected, desired, result, type,
                                           DIOMP_SITE);
    case OMPX_INT64:
    case OMPX_UINT64:
    case OMPX_DOUBLE:
        return compare_swap<std::uint64_t>(rank, target, expected, desired, result, type,
                                           DIOMP_SITE);
    default:
        return compare_swap_slow_path(rank, target, expected, desired, result, type, DIOMP_SITE);
    }
}

int ompx_atomic_compare_swap_nb(int rank, void *target, const void *expected, const void *desired,
                                void *result, ompx_type_t type, ompx_event_t *event) noexcept {
    return api::call(
        "ompx_atomic_compare_swap_nb", DIOMP_SITE,
        [&] { return describe_atomic(rank, target, type); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            DIOMP_TRY(check_compare_swap(running, rank, target, expected, desired));
            stats = {"", ompx_type_size(type), rank};
            return running.transfers().atomics().start_compare_swap(
                world_rank{rank}, target, expected, desired, result, type, event);
        });
}

int ompx_context_atomic_compare_swap_nb(ompx_context_t context, int rank, void *target,
                                        const void *expected, const void *desired, void *result,
                                        ompx_type_t type) noexcept {
    return api::call(
        "ompx_context_atomic_compare_swap_nb", DIOMP_SITE,
        [&] {
            return fmt::format("context={}, {}", fmt::ptr(context),
                               describe_atomic(rank, target, type));
        },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            DIOMP_TRY(check_compare_swap(running, rank, target, expected, desired));
            stats = {"", ompx_type_size(type), rank};
            return api::start_in(running, context, [&](ompx_event_t *event) {
                return running.transfers().atomics().start_compare_swap(
                    world_rank{rank}, target, expected, desired, result, type, event);
            });
        });
}

} // extern "C"
