// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The loops of the reduction kernels. Their results equal those of the loops for the processor
// bitwise (coll/kernels.cpp): operands in the same order, rounded after each step. Needs no
// library.
#pragma once

#include "base/minimum_maximum.h"
#include "base/small_floats.h"
#include "device/kernels/reduction.h"

#if defined(__NVPTX__) || defined(__AMDGPU__)
#define DIOMP_GLOBAL __attribute__((address_space(1)))
#else
#define DIOMP_GLOBAL
#endif
#if defined(__clang__)
#define DIOMP_UNROLL _Pragma("clang loop unroll(full)")
#else
#define DIOMP_UNROLL _Pragma("GCC unroll 16")
#endif

namespace diomp::device::kernels {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i8 = signed char;
using i16 = short;
using i32 = int;
using i64 = long long;
using f16 = float16;
using bf16 = bfloat16;
using f32 = float;
using f64 = double;
template <typename T>
struct complex_pair {
    T real;
    T imag;
};
using c32 = complex_pair<float>;
using c64 = complex_pair<double>;

/// A value and an index, laid out as OMPX_FLOAT_INT and its siblings (diomp/types.h). The gaps have
/// names, since an element is loaded and stored as a whole.
struct f32_i32 {
    f32 value;
    i32 index;
};
struct f64_i32 {
    f64 value;
    i32 index;
    i32 gap;
};
struct i64_i32 {
    i64 value;
    i32 index;
    i32 gap;
};
struct i32_i32 {
    i32 value;
    i32 index;
};
struct i16_i32 {
    i16 value;
    i16 gap;
    i32 index;
};
struct f32_f32 {
    f32 value;
    f32 index;
};
struct f64_f64 {
    f64 value;
    f64 index;
};
struct i64_i64 {
    i64 value;
    i64 index;
};
struct f64_i64 {
    f64 value;
    i64 index;
};

/// The type of a single load or store.
template <unsigned nbytes>
struct raw;
template <>
struct raw<1> {
    using type = u8;
};
template <>
struct raw<2> {
    using type = u16;
};
template <>
struct raw<4> {
    using type = u32;
};
template <>
struct raw<8> {
    using type = u64;
};
template <>
struct raw<16> {
    typedef u32 type __attribute__((vector_size(16))); // NOLINT(modernize-use-using)
};

/// Elements that one thread processes at a time: 16 bytes, aligned, in a vector, so that they stay
/// in registers.
template <typename T, unsigned lanes>
struct block {
    using unit = typename raw<sizeof(T)>::type;
    typedef unit type
        __attribute__((vector_size(lanes * sizeof(T)))); // NOLINT(modernize-use-using)

    static DIOMP_INLINE T get(const type &from, unsigned lane) {
        unit const element =
            from[lane]; // bit_cast of the vector element itself takes the first element (clang 19)
        return __builtin_bit_cast(T, element);
    }
    static DIOMP_INLINE void set(type &into, unsigned lane, T value) {
        into[lane] = __builtin_bit_cast(unit, value);
    }
};
/// One element, aligned like its components.
template <typename T>
struct block<T, 1> {
    typedef typename raw<sizeof(T)>::type type // NOLINT(modernize-use-using)
        __attribute__((aligned(alignof(T))));

    static DIOMP_INLINE T get(const type &from, unsigned) { return __builtin_bit_cast(T, from); }
    static DIOMP_INLINE void set(type &into, unsigned, T value) {
        into = __builtin_bit_cast(type, value);
    }
};

DIOMP_INLINE f16 narrow_to(f16, float value) { return narrow_float16(value); }
DIOMP_INLINE bf16 narrow_to(bf16, float value) { return narrow_bfloat16(value); }

// Operators: combine() for two elements, finish() for the last result and the divisor.
struct any_operator {
    template <typename T>
    static DIOMP_INLINE T finish(T value, u64) {
        return value;
    }
};
/// Signed overflow wraps; intermediate results are not promoted to a signed type.
struct sum : any_operator {
    template <typename T>
    static DIOMP_INLINE T combine(T a, T b) {
        return static_cast<T>(a + b);
    }
};
struct prod : any_operator {
    template <typename T>
    static DIOMP_INLINE T combine(T a, T b) {
        return static_cast<T>(a * b);
    }
    static DIOMP_INLINE u16 combine(u16 a, u16 b) { return static_cast<u16>(u32{a} * u32{b}); }
    template <typename T>
    static DIOMP_INLINE complex_pair<T> combine(complex_pair<T> a, complex_pair<T> b) {
        return {a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real};
    }
};
struct min : any_operator {
    template <typename T>
    static DIOMP_INLINE T combine(T a, T b) {
        return minimum(a, b);
    }
};
struct max : any_operator {
    template <typename T>
    static DIOMP_INLINE T combine(T a, T b) {
        return maximum(a, b);
    }
};
struct land : any_operator {
    template <typename T>
    static DIOMP_INLINE T combine(T a, T b) {
        return static_cast<T>((a != T{}) & (b != T{}));
    }
};
struct lor : any_operator {
    template <typename T>
    static DIOMP_INLINE T combine(T a, T b) {
        return static_cast<T>((a != T{}) | (b != T{}));
    }
};
struct band : any_operator {
    static DIOMP_INLINE u8 combine(u8 a, u8 b) { return a & b; }
};
struct bor : any_operator {
    static DIOMP_INLINE u8 combine(u8 a, u8 b) { return a | b; }
};
struct bxor : any_operator {
    static DIOMP_INLINE u8 combine(u8 a, u8 b) { return a ^ b; }
};
/// Whether a value is the one that minimum() or maximum() has chosen from it and others.
template <typename T>
DIOMP_INLINE bool is_chosen(T value, T chosen) {
    if constexpr (T(0.5F) != T(0)) {
        return chosen != chosen
                   ? value != value
                   : value == chosen && __builtin_signbit(value) == __builtin_signbit(chosen);
    } else {
        return value == chosen;
    }
}
/// The pair with this value, and the lowest index of those that have it.
template <typename Pair, typename T>
DIOMP_INLINE Pair choose_pair(Pair a, Pair b, T value) {
    bool const has_first = is_chosen(a.value, value);
    bool const is_lower = b.index < a.index;
    Pair chosen = has_first && !(is_chosen(b.value, value) && is_lower) ? a : b;
    chosen.value = value;
    return chosen;
}
struct minloc : any_operator {
    template <typename Pair>
    static DIOMP_INLINE Pair combine(Pair a, Pair b) {
        return choose_pair(a, b, minimum(a.value, b.value));
    }
};
struct maxloc : any_operator {
    template <typename Pair>
    static DIOMP_INLINE Pair combine(Pair a, Pair b) {
        return choose_pair(a, b, maximum(a.value, b.value));
    }
};
/// The sum, divided at the end; integer division truncates.
struct avg {
    template <typename T>
    static DIOMP_INLINE T combine(T a, T b) {
        return sum::combine(a, b);
    }
    static DIOMP_INLINE i32 combine(i32 a, i32 b) {
        return static_cast<i32>(static_cast<u32>(a) + static_cast<u32>(b));
    }
    static DIOMP_INLINE i64 combine(i64 a, i64 b) {
        return static_cast<i64>(static_cast<u64>(a) + static_cast<u64>(b));
    }
    template <typename T>
    static DIOMP_INLINE T finish(T value, u64 divisor) {
        if constexpr (T(0.5F) != T(0)) {
            return value / static_cast<T>(divisor);
        } else if constexpr (T(-1) < T(0)) {
            return static_cast<T>(i64{value} / static_cast<i64>(divisor));
        } else {
            return static_cast<T>(u64{value} / divisor);
        }
    }
};

template <typename Op, typename T>
struct on_elements {
    static DIOMP_INLINE T combine(T a, T b) { return Op::combine(a, b); }
    static DIOMP_INLINE T finish(T value, u64 divisor) { return Op::finish(value, divisor); }
};
template <typename Op, typename T>
struct on : on_elements<Op, T> {};
template <typename Op, typename T>
struct on_small_floats {
    static DIOMP_INLINE T combine(T a, T b) {
        return narrow_to(T{}, Op::combine(widen(a), widen(b)));
    }
    static DIOMP_INLINE T finish(T value, u64 divisor) {
        return narrow_to(T{}, Op::finish(widen(value), divisor));
    }
};
template <typename Op>
struct on<Op, f16> : on_small_floats<Op, f16> {};
template <typename Op>
struct on<Op, bf16> : on_small_floats<Op, bf16> {};
// min and max need no conversion to float.
template <>
struct on<min, f16> : on_elements<min, f16> {};
template <>
struct on<min, bf16> : on_elements<min, bf16> {};
template <>
struct on<max, f16> : on_elements<max, f16> {};
template <>
struct on<max, bf16> : on_elements<max, bf16> {};

/// Reduces blocks [begin, end) of `lanes` elements, counted from the start of each array and
/// distributed over all threads; `Threads` has first() of the calling thread and step().
template <typename Threads, typename Op, typename T, unsigned lanes>
DIOMP_INLINE void reduce_blocks(const reduction_arguments &all, u64 begin, u64 end) {
    using kind = block<T, lanes>;
    using loaded = typename kind::type;
    for (u64 i = begin + Threads::first(); i < end; i += Threads::step()) {
        loaded result = reinterpret_cast<const DIOMP_GLOBAL loaded *>(all.sources[0])[i];
        for (u64 source = 1; source < all.num_sources; ++source) {
            loaded const next =
                reinterpret_cast<const DIOMP_GLOBAL loaded *>(all.sources[source])[i];
            DIOMP_UNROLL
            for (unsigned lane = 0; lane < lanes; ++lane) {
                kind::set(result, lane,
                          on<Op, T>::combine(kind::get(result, lane), kind::get(next, lane)));
            }
        }
        DIOMP_UNROLL
        for (unsigned lane = 0; lane < lanes; ++lane) {
            kind::set(result, lane, on<Op, T>::finish(kind::get(result, lane), all.divisor));
        }
        reinterpret_cast<DIOMP_GLOBAL loaded *>(all.dst)[i] = result;
    }
}

template <typename Threads, typename Op, typename T>
DIOMP_INLINE void reduce(const reduction_arguments &all) {
    constexpr unsigned lanes = 16 / sizeof(T);
    reduce_blocks<Threads, Op, T, lanes>(all, 0, all.num_vectors);
    reduce_blocks<Threads, Op, T, 1>(all, all.num_vectors * lanes, all.count);
}

} // namespace diomp::device::kernels
