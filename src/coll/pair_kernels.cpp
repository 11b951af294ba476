// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// OMPX_MINLOC and OMPX_MAXLOC: loops over pairs of a value and an index. The value is chosen as by
// OMPX_MIN and OMPX_MAX, so these operators are commutative and associative, too: they choose the
// first pair in an order of values in which all NaNs are one value, then of indices.
#include "base/minimum_maximum.h"
#include "coll/internal/operators.h"

#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstring>

namespace diomp::coll {
namespace {

template <typename V, typename I>
struct valued_index {
    V value;
    I index;
};
static_assert(sizeof(valued_index<float, std::int32_t>) == sizeof(ompx_float_int_t) &&
              sizeof(valued_index<long double, std::int32_t>) == sizeof(ompx_long_double_int_t));

/// Whether a value is the one that minimum() or maximum() has chosen from it and others.
template <typename V>
bool is_chosen(V value, V chosen) {
    if constexpr (std::integral<V>) {
        return value == chosen;
    } else {
        return std::isnan(chosen) ? std::isnan(value)
                                  : value == chosen && std::signbit(value) == std::signbit(chosen);
    }
}

template <ompx_op_t op, typename V, typename I>
valued_index<V, I> choose(const valued_index<V, I> &a, const valued_index<V, I> &b) {
    V const value = op == OMPX_MINLOC ? minimum(a.value, b.value) : maximum(a.value, b.value);
    bool const has_first = is_chosen(a.value, value);
    bool const has_second = is_chosen(b.value, value);
    if (has_first && has_second) {
        return {value, b.index < a.index ? b.index : a.index};
    }
    return {value, has_first ? a.index : b.index};
}

template <ompx_op_t op, typename V, typename I>
void combine(void *out, const void *a, const void *b, std::size_t count) {
    using pair = valued_index<V, I>;
    auto *const to = static_cast<std::byte *>(out);
    auto const *const left = static_cast<const std::byte *>(a);
    auto const *const right = static_cast<const std::byte *>(b);
    for (std::size_t at = 0; at < count * sizeof(pair); at += sizeof(pair)) {
        pair operands[2]; // buffers of the runtime are aligned to 8 bytes, long double to 16
        std::memcpy(&operands[0], left + at, sizeof(pair));
        std::memcpy(&operands[1], right + at, sizeof(pair));
        pair const chosen = choose<op, V, I>(operands[0], operands[1]);
        std::memcpy(to + at, &chosen, sizeof(pair));
    }
}

template <typename V, typename I>
combine_function kernel_of(ompx_op_t op) {
    switch (op) {
    case OMPX_MINLOC:
        return combine<OMPX_MINLOC, V, I>;
    case OMPX_MAXLOC:
        return combine<OMPX_MAXLOC, V, I>;
    default:
        return nullptr;
    }
}

} // namespace

combine_function find_pair_kernel(ompx_type_t type, ompx_op_t op) {
    switch (type) {
    case OMPX_FLOAT_INT:
        return kernel_of<float, std::int32_t>(op);
    case OMPX_DOUBLE_INT:
        return kernel_of<double, std::int32_t>(op);
    case OMPX_LONG_INT:
        return kernel_of<std::int64_t, std::int32_t>(op);
    case OMPX_2INT:
        return kernel_of<std::int32_t, std::int32_t>(op);
    case OMPX_SHORT_INT:
        return kernel_of<std::int16_t, std::int32_t>(op);
    case OMPX_LONG_DOUBLE_INT:
        return kernel_of<long double, std::int32_t>(op);
    case OMPX_2FLOAT:
        return kernel_of<float, float>(op);
    case OMPX_2DOUBLE:
        return kernel_of<double, double>(op);
    case OMPX_2INT64:
        return kernel_of<std::int64_t, std::int64_t>(op);
    case OMPX_DOUBLE_INT64:
        return kernel_of<double, std::int64_t>(op);
    default:
        return nullptr;
    }
}

} // namespace diomp::coll
