// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// OMPX_MIN and OMPX_MAX of two values, for all code that combines them: loops for the processor,
// kernels for GPUs, atomics. Needs no library, since it is also compiled for GPUs.
//
// Floating-point types follow minimum and maximum of IEEE 754-2019, 9.6: a NaN makes the result a
// NaN, and -0 is less than +0. The NaN is always the type's quiet NaN without sign and payload. So
// the bits of a result depend neither on the order of the operands nor on the processor.
#pragma once

#include "base/small_floats.h"

namespace diomp {
namespace extremes {

enum class kind { least, greatest };

/// For `float` and `double`: the integer of equal size, and the canonical NaN.
template <typename T>
struct layout;
template <>
struct layout<float> {
    using word = unsigned;
    static constexpr word nan = 0x7fc00000;
};
template <>
struct layout<double> {
    using word = unsigned long long;
    static constexpr word nan = 0x7ff8000000000000;
};
template <>
struct layout<float16> {
    static constexpr short infinity = 0x7c00;
    static constexpr short nan = 0x7e00;
};
template <>
struct layout<bfloat16> {
    static constexpr short infinity = 0x7f80;
    static constexpr short nan = 0x7fc0;
};

// The processor's minimum and maximum return their second operand if the two are equal or
// unordered. So the two orders differ only for zeros of different signs, where `and` has the sign
// of the larger and `or` that of the smaller, and for NaNs, which are replaced. Compilers emit five
// vector instructions with AVX2 and seven with SSE2, and no branch.
template <kind which, typename T>
DIOMP_INLINE T of_floating(T a, T b) {
    using word = typename layout<T>::word;
    word both = 0;
    if constexpr (which == kind::greatest) {
        both = __builtin_bit_cast(word, a > b ? a : b) & __builtin_bit_cast(word, b > a ? b : a);
    } else {
        both = __builtin_bit_cast(word, a < b ? a : b) | __builtin_bit_cast(word, b < a ? b : a);
    }
    word const unordered = word{0} - static_cast<word>(__builtin_isunordered(a, b));
    return __builtin_bit_cast(T, (both & ~unordered) | (layout<T>::nan & unordered));
}

/// Maps to integers in the order of the numbers, NaNs beyond the infinities of their sign. Its own
/// inverse.
DIOMP_INLINE short ordered(short bits) {
    return static_cast<short>(bits ^ ((bits >> 15) & 0x7fff));
}

template <kind which, typename T>
DIOMP_INLINE T of_small(T a, T b) {
    auto const left = static_cast<short>(a.bits);
    auto const right = static_cast<short>(b.bits);
    short const x = ordered(left);
    short const y = ordered(right);
    bool const takes_right = which == kind::greatest ? x < y : y < x;
    short const chosen = ordered(takes_right ? y : x);
    auto const left_size = static_cast<short>(left & 0x7fff);
    auto const right_size = static_cast<short>(right & 0x7fff);
    short const larger = left_size < right_size ? right_size : left_size;
    return {static_cast<unsigned short>(larger > layout<T>::infinity ? layout<T>::nan : chosen)};
}

/// Integers.
template <kind which, typename T>
DIOMP_INLINE T of(T a, T b) {
    return (which == kind::greatest ? a < b : b < a) ? b : a;
}
template <kind which>
DIOMP_INLINE float of(float a, float b) {
    return of_floating<which>(a, b);
}
template <kind which>
DIOMP_INLINE double of(double a, double b) {
    return of_floating<which>(a, b);
}
template <kind which>
DIOMP_INLINE float16 of(float16 a, float16 b) {
    return of_small<which>(a, b);
}
template <kind which>
DIOMP_INLINE bfloat16 of(bfloat16 a, bfloat16 b) {
    return of_small<which>(a, b);
}
#if !defined(__NVPTX__) && !defined(__AMDGPU__)
/// The size and layout of long double differ between processors, and none has vectors of it.
template <kind which>
DIOMP_INLINE long double of(long double a, long double b) {
    if (__builtin_isunordered(a, b)) {
        return __builtin_nanl("");
    }
    if (a == b) {
        bool const is_negative = __builtin_signbit(a) != 0;
        return is_negative == (which == kind::greatest) ? b : a;
    }
    return (which == kind::greatest ? a < b : b < a) ? b : a;
}
#endif

} // namespace extremes

template <typename T>
DIOMP_INLINE T minimum(T a, T b) {
    return extremes::of<extremes::kind::least>(a, b);
}
template <typename T>
DIOMP_INLINE T maximum(T a, T b) {
    return extremes::of<extremes::kind::greatest>(a, b);
}

} // namespace diomp
