// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Remote atomics.
#include "diomp/atomic.h"

#include "api/internal/direct.h"
#include "api/internal/state.h"
#include "diomp/nonblocking.h"
#include "messaging/engine.h"
#include "rma/atomics.h"
#include "rma/rma.h"
#include "sync/call_signature.h"

#include <atomic>
#include <cstring>

using namespace diomp;

namespace {

std::string describe_atomic(int rank, const void *target, ompx_type_t type) {
    return fmt::format("rank={}, target={}, type={}", rank, target, sync::type_name(type));
}

std::string describe_fetch(int rank, const void *target, ompx_type_t type, ompx_op_t op) {
    return fmt::format("{}, op={}", describe_atomic(rank, target, type), sync::operator_name(op));
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

/// A word of symmetric memory that this core may change itself; nullptr: the fast path must not be
/// taken.
template <typename T>
[[gnu::always_inline]] inline T *direct_word(int rank, void *target) {
    if (!api::g_fast.has_direct_atomics.load(std::memory_order_relaxed) ||
        reinterpret_cast<std::uintptr_t>(target) % sizeof(T) != 0) [[unlikely]] {
        return nullptr;
    }
    std::byte *direct = api::direct_address(rank, target, sizeof(T));
    if (direct == nullptr) {
        direct = api::direct_static_address(rank, target, sizeof(T));
    }
    return reinterpret_cast<T *>(direct);
}

template <typename T>
[[gnu::always_inline]] inline T load_from(const void *address) {
    T value;
    std::memcpy(&value, address, sizeof(value));
    return value;
}

/// False: not an operation that processors have.
template <typename T>
[[gnu::always_inline]] inline bool fetch_word(T *word, const void *operand, void *result,
                                              ompx_op_t op) {
    std::atomic_ref<T> const cell(*word);
    T const given = op == OMPX_NO_OP ? T{} : load_from<T>(operand);
    T old{};
    switch (op) {
    case OMPX_SUM:
        old = cell.fetch_add(given);
        break;
    case OMPX_REPLACE:
        old = cell.exchange(given);
        break;
    case OMPX_NO_OP:
        old = cell.load();
        break;
    case OMPX_BAND:
        old = cell.fetch_and(given);
        break;
    case OMPX_BOR:
        old = cell.fetch_or(given);
        break;
    case OMPX_BXOR:
        old = cell.fetch_xor(given);
        break;
    default:
        return false;
    }
    if (result != nullptr) {
        std::memcpy(result, &old, sizeof(old));
    }
    return true;
}

[[gnu::noinline]] void wake_sleepers(int rank) noexcept {
    api::runtime_access const here("ompx_atomic_fetch");
    if (here.running() != nullptr) {
        here.running()->connection().engine().wake_for_store(world_rank{rank});
    }
}

[[gnu::always_inline]] inline int wake_after_store(int rank) {
    if (api::g_fast.store_sleepers->load(std::memory_order_relaxed) > 0) [[unlikely]] {
        wake_sleepers(rank);
    }
    return OMPX_SUCCESS;
}

template <typename T>
[[gnu::always_inline]] inline bool fetch_directly(int rank, void *target, const void *operand,
                                                  void *result, ompx_op_t op) {
    T *const word = direct_word<T>(rank, target);
    return word != nullptr && (operand != nullptr || op == OMPX_NO_OP) &&
           fetch_word(word, operand, result, op);
}

template <typename T>
[[gnu::always_inline]] inline bool compare_swap_directly(int rank, void *target,
                                                         const void *expected, const void *desired,
                                                         void *result) {
    T *const word = direct_word<T>(rank, target);
    if (word == nullptr || expected == nullptr || desired == nullptr) {
        return false;
    }
    T seen = load_from<T>(expected);
    std::atomic_ref<T>(*word).compare_exchange_strong(seen, load_from<T>(desired));
    if (result != nullptr) {
        std::memcpy(result, &seen, sizeof(seen));
    }
    return true;
}

[[gnu::noinline]] int fetch_slow_path(const void *site, int rank, void *target, const void *operand,
                                      void *result, ompx_type_t type, ompx_op_t op) noexcept {
    return api::call(
        "ompx_atomic_fetch", site, [&] { return describe_fetch(rank, target, type, op); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            DIOMP_TRY(check_fetch(running, rank, target, operand, op));
            stats.nbytes = ompx_type_size(type);
            return running.transfers().atomics().fetch(world_rank{rank}, target, operand, result,
                                                       type, op);
        });
}

[[gnu::noinline]] int compare_swap_slow_path(const void *site, int rank, void *target,
                                             const void *expected, const void *desired,
                                             void *result, ompx_type_t type) noexcept {
    return api::call(
        "ompx_atomic_compare_swap", site, [&] { return describe_atomic(rank, target, type); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            DIOMP_TRY(check_compare_swap(running, rank, target, expected, desired));
            stats.nbytes = ompx_type_size(type);
            return running.transfers().atomics().compare_swap(world_rank{rank}, target, expected,
                                                              desired, result, type);
        });
}

} // namespace

extern "C" {

int ompx_atomic_fetch(int rank, void *target, const void *operand, void *result, ompx_type_t type,
                      ompx_op_t op) noexcept {
    bool is_done = false;
    if (type == OMPX_INT64 || type == OMPX_UINT64) {
        is_done = fetch_directly<std::uint64_t>(rank, target, operand, result, op);
    } else if (type == OMPX_INT32 || type == OMPX_UINT32) {
        is_done = fetch_directly<std::uint32_t>(rank, target, operand, result, op);
    }
    return is_done ? wake_after_store(rank)
                   : fetch_slow_path(DIOMP_SITE, rank, target, operand, result, type, op);
}

int ompx_atomic_fetch_nb(int rank, void *target, const void *operand, void *result,
                         ompx_type_t type, ompx_op_t op, ompx_event_t *event) noexcept {
    return api::call(
        "ompx_atomic_fetch_nb", DIOMP_SITE, [&] { return describe_fetch(rank, target, type, op); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            DIOMP_TRY(check_fetch(running, rank, target, operand, op));
            stats.nbytes = ompx_type_size(type);
            return running.transfers().atomics().start_fetch(world_rank{rank}, target, operand,
                                                             result, type, op, event);
        });
}

int ompx_atomic_compare_swap(int rank, void *target, const void *expected, const void *desired,
                             void *result, ompx_type_t type) noexcept {
    bool is_done = false;
    if (type == OMPX_INT64 || type == OMPX_UINT64) {
        is_done = compare_swap_directly<std::uint64_t>(rank, target, expected, desired, result);
    } else if (type == OMPX_INT32 || type == OMPX_UINT32) {
        is_done = compare_swap_directly<std::uint32_t>(rank, target, expected, desired, result);
    }
    return is_done
               ? wake_after_store(rank)
               : compare_swap_slow_path(DIOMP_SITE, rank, target, expected, desired, result, type);
}

int ompx_atomic_compare_swap_nb(int rank, void *target, const void *expected, const void *desired,
                                void *result, ompx_type_t type, ompx_event_t *event) noexcept {
    return api::call(
        "ompx_atomic_compare_swap_nb", DIOMP_SITE,
        [&] { return describe_atomic(rank, target, type); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            DIOMP_TRY(check_compare_swap(running, rank, target, expected, desired));
            stats.nbytes = ompx_type_size(type);
            return running.transfers().atomics().start_compare_swap(
                world_rank{rank}, target, expected, desired, result, type, event);
        });
}

} // extern "C"
