// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Remote atomics, and waits for a local variable that atomics or signals change.
#include "api/internal/state.h"
#include "rma/rma.h"
#include "sync/call_signature.h"

#include <cstring>

using namespace diomp;

namespace {

template <typename T>
bool compare(T current, ompx_cmp_t cmp, T value) {
    switch (cmp) {
    case OMPX_CMP_EQ:
        return current == value;
    case OMPX_CMP_NE:
        return current != value;
    case OMPX_CMP_GT:
        return current > value;
    case OMPX_CMP_GE:
        return current >= value;
    case OMPX_CMP_LT:
        return current < value;
    case OMPX_CMP_LE:
        return current <= value;
    }
    return false;
}

bool is_comparison(ompx_cmp_t cmp) { return cmp >= OMPX_CMP_EQ && cmp <= OMPX_CMP_LE; }

std::string describe(ompx_cmp_t cmp) {
    constexpr const char *names[] = {"EQ", "NE", "GT", "GE", "LT", "LE"};
    return is_comparison(cmp) ? fmt::format("OMPX_CMP_{}", names[cmp])
                              : std::to_string(static_cast<int>(cmp));
}

/// Checks the variable and the comparison of a wait or test.
template <typename T>
status check_wait(const void *variable, ompx_cmp_t cmp) {
    if (!is_comparison(cmp)) {
        return error(OMPX_ERR_ARG, fmt::format("{} is not a comparison", static_cast<int>(cmp)),
                     "pass one of OMPX_CMP_EQ .. LE");
    }
    if (reinterpret_cast<std::uintptr_t>(variable) % sizeof(T) != 0) {
        return error(OMPX_ERR_ARG,
                     fmt::format("the variable is not aligned to its {} bytes", sizeof(T)),
                     "declare it with its type, or align the allocation");
    }
    return {};
}

template <typename T>
status wait_until(runtime::runtime &running, const void *variable, ompx_cmp_t cmp,
                  const void *value) {
    constexpr const char *words[] = {"==", "!=", ">", ">=", "<", "<="};
    DIOMP_TRY(check_wait<T>(variable, cmp));
    auto const *cell = static_cast<const T *>(variable);
    T wanted;
    std::memcpy(&wanted, value, sizeof(wanted));
    // Acquire: after the value, the thread sees the data that was put before it.
    auto const ready = [&] {
        return compare(__atomic_load_n(cell, __ATOMIC_ACQUIRE), cmp, wanted);
    };
    auto const waiting = [&] {
        return fmt::format("waiting for {} {} {} (it is {})", variable, words[cmp], wanted,
                           __atomic_load_n(cell, __ATOMIC_RELAXED));
    };
    // Remote ranks signal by message, ranks of this node by a store.
    return running.transfers().all_direct()
               ? running.connection().engine().wait(ready, waiting)
               : running.connection().engine().wait_for_message(ready, waiting);
}

std::string describe_atomic(int rank, const void *target, ompx_type_t type) {
    return fmt::format("rank={}, target={}, type={}", rank, target, sync::type_name(type));
}

} // namespace

extern "C" {

int ompx_atomic_fetch(int rank, void *target, const void *operand, void *result, ompx_type_t type,
                      ompx_op_t op) noexcept {
    return api::call(
        "ompx_atomic_fetch", DIOMP_SITE,
        [&] {
            return fmt::format("{}, op={}", describe_atomic(rank, target, type),
                               sync::operator_name(op));
        },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            DIOMP_TRY(api::check_rank(running, rank));
            DIOMP_TRY(api::check_pointer(target, "target"));
            if (op != OMPX_NO_OP) {
                DIOMP_TRY(api::check_pointer(operand, "operand"));
            }
            stats.nbytes = ompx_type_size(type);
            return running.transfers().atomics().fetch(world_rank{rank}, target, operand, result,
                                                       type, op);
        });
}

int ompx_atomic_compare_swap(int rank, void *target, const void *expected, const void *desired,
                             void *result, ompx_type_t type) noexcept {
    return api::call(
        "ompx_atomic_compare_swap", DIOMP_SITE, [&] { return describe_atomic(rank, target, type); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            DIOMP_TRY(api::check_rank(running, rank));
            DIOMP_TRY(api::check_pointer(target, "target"));
            DIOMP_TRY(api::check_pointer(expected, "expected"));
            DIOMP_TRY(api::check_pointer(desired, "desired"));
            stats.nbytes = ompx_type_size(type);
            return running.transfers().atomics().compare_swap(world_rank{rank}, target, expected,
                                                              desired, result, type);
        });
}

int ompx_signal_wait(const uint64_t *signal, ompx_cmp_t cmp, uint64_t value) noexcept {
    return api::call(
        "ompx_signal_wait", DIOMP_SITE,
        [&] {
            return fmt::format("signal={}, cmp={}, value={}", fmt::ptr(signal), describe(cmp),
                               value);
        },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            DIOMP_TRY(api::check_pointer(signal, "signal"));
            return wait_until<std::uint64_t>(running, signal, cmp, &value);
        });
}

int ompx_signal_test(const uint64_t *signal, ompx_cmp_t cmp, uint64_t value, int *done) noexcept {
    return api::call(
        "ompx_signal_test", DIOMP_SITE,
        [&] {
            return fmt::format("signal={}, cmp={}, value={}", fmt::ptr(signal), describe(cmp),
                               value);
        },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            DIOMP_TRY(api::check_pointer(signal, "signal"));
            DIOMP_TRY(api::check_pointer(done, "done"));
            DIOMP_TRY(check_wait<std::uint64_t>(signal, cmp));
            auto const holds = [&] {
                return compare(__atomic_load_n(signal, __ATOMIC_ACQUIRE), cmp, value);
            };
            if (!holds()) {
                running.connection().engine().poll();
            }
            *done = holds() ? 1 : 0;
            return {};
        });
}

int ompx_wait_until(const void *variable, ompx_type_t type, ompx_cmp_t cmp,
                    const void *value) noexcept {
    return api::call(
        "ompx_wait_until", DIOMP_SITE,
        [&] {
            return fmt::format("variable={}, type={}, cmp={}", variable, sync::type_name(type),
                               describe(cmp));
        },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            DIOMP_TRY(api::check_pointer(variable, "variable"));
            DIOMP_TRY(api::check_pointer(value, "value"));
            switch (type) {
            case OMPX_INT32:
                return wait_until<std::int32_t>(running, variable, cmp, value);
            case OMPX_UINT32:
                return wait_until<std::uint32_t>(running, variable, cmp, value);
            case OMPX_INT64:
                return wait_until<std::int64_t>(running, variable, cmp, value);
            case OMPX_UINT64:
                return wait_until<std::uint64_t>(running, variable, cmp, value);
            default:
                return error(OMPX_ERR_ARG, fmt::format("type {} cannot be waited for", type),
                             "use OMPX_INT32, UINT32, INT64 or UINT64");
            }
        });
}

} // extern "C"
