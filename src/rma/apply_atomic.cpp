// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rma/internal/apply_atomic.h"

#include "base/minimum_maximum.h"
#include "diomp/types.h"
#include "rma/integer_atomics.h"

#include <fmt/core.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace diomp::rma {
namespace {

template <typename T>
T load_from(const void *address) {
    T value;
    std::memcpy(&value, address, sizeof(value));
    return value;
}

/// The operators that have no instruction.
template <typename T>
T combine(T current, T operand, ompx_op_t op) {
    switch (op) {
    case OMPX_SUM:
        return current + operand;
    case OMPX_MIN:
        return minimum(current, operand);
    case OMPX_MAX:
        return maximum(current, operand);
    default:
        return operand; // OMPX_REPLACE
    }
}

template <typename T>
T fetch_by_exchange(T *target, T operand, ompx_op_t op) {
    std::atomic_ref<T> const cell(*target);
    T seen = cell.load();
    while (op != OMPX_NO_OP && !cell.compare_exchange_weak(seen, combine(seen, operand, op))) {
    }
    return seen;
}

template <typename T>
T fetch(T *target, T operand, ompx_op_t op) {
    if constexpr (std::is_integral_v<T>) {
        if (has_instruction(op)) {
            using U = std::make_unsigned_t<T>;
            return static_cast<T>(
                fetch_by_instruction(reinterpret_cast<U *>(target), static_cast<U>(operand), op));
        }
    }
    return fetch_by_exchange(target, operand, op);
}

template <typename T>
void apply(void *target, const void *operand, void *result, ompx_op_t op) {
    T const given = op == OMPX_NO_OP ? T{} : load_from<T>(operand);
    T const old = fetch(static_cast<T *>(target), given, op);
    if (result != nullptr) {
        std::memcpy(result, &old, sizeof(old));
    }
}

/// Calls f with a value of the type, if atomics support the type.
template <typename F>
void with_type(ompx_type_t type, F &&f) {
    switch (type) {
    case OMPX_INT32:
        return f(std::int32_t{});
    case OMPX_UINT32:
        return f(std::uint32_t{});
    case OMPX_INT64:
        return f(std::int64_t{});
    case OMPX_UINT64:
        return f(std::uint64_t{});
    case OMPX_FLOAT:
        return f(float{});
    case OMPX_DOUBLE:
        return f(double{});
    default:
        return;
    }
}

} // namespace

result<std::size_t> check_atomic(ompx_type_t type, ompx_op_t op) {
    std::size_t size = 0;
    bool integer = false;
    with_type(type, [&](auto value) {
        size = sizeof(value);
        integer = std::is_integral_v<decltype(value)>;
    });
    if (size == 0) {
        return error(OMPX_ERR_ARG, fmt::format("type {} has no atomic operations", type),
                     "use OMPX_INT32, UINT32, INT64, UINT64, FLOAT or DOUBLE");
    }
    bool const bitwise = op == OMPX_BAND || op == OMPX_BOR || op == OMPX_BXOR;
    bool const any = op == OMPX_SUM || op == OMPX_MIN || op == OMPX_MAX || op == OMPX_REPLACE ||
                     op == OMPX_NO_OP;
    if (!any && !(bitwise && integer)) {
        return error(OMPX_ERR_ARG,
                     bitwise ? "bitwise operators need an integer type"
                             : fmt::format("operator {} is not atomic", op),
                     "use OMPX_SUM, MIN, MAX, REPLACE, NO_OP, or on integers BAND, BOR, BXOR");
    }
    return size;
}

void apply_atomic(void *target, const void *operand, void *result, ompx_type_t type, ompx_op_t op) {
    with_type(type, [&](auto value) { apply<decltype(value)>(target, operand, result, op); });
}

void apply_compare_swap(void *target, const void *expected, const void *desired, void *result,
                        ompx_type_t type) {
    // Bitwise, as the processor compares: floating types are treated as integers of their size.
    auto const swap = [&](auto word) {
        using T = decltype(word);
        T seen = load_from<T>(expected);
        std::atomic_ref<T>(*static_cast<T *>(target))
            .compare_exchange_strong(seen, load_from<T>(desired));
        if (result != nullptr) {
            std::memcpy(result, &seen, sizeof(seen));
        }
    };
    if (type == OMPX_INT32 || type == OMPX_UINT32 || type == OMPX_FLOAT) {
        swap(std::uint32_t{});
    } else {
        swap(std::uint64_t{});
    }
}

} // namespace diomp::rma
