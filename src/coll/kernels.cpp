// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loops of the predefined operators, one per type and operator, compiled for the baseline and for
// AVX2; selected at run time by processor. Contraction into fused multiply-adds is off, so that
// both versions give the same bits.
#include "base/cpu_features.h"
#include "base/minimum_maximum.h"
#include "base/small_floats.h"
#include "coll/internal/operators.h"

#include <complex>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#if defined(__clang__)
#define DIOMP_INDEPENDENT_ITERATIONS _Pragma("clang loop vectorize(assume_safety)")
#else
#define DIOMP_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#endif

namespace diomp::coll {
namespace {

template <typename T>
concept small_float = std::same_as<T, float16> || std::same_as<T, bfloat16>;
template <typename T>
concept complex_number =
    std::same_as<T, std::complex<float>> || std::same_as<T, std::complex<double>>;
template <typename T>
concept whole_number = std::integral<T> && !std::same_as<T, bool>;

/// Unsigned type in which signed overflow wraps, wide enough to avoid promotion to int.
template <typename T>
using wrapping =
    std::conditional_t<sizeof(T) <= sizeof(std::uint32_t), std::uint32_t, std::uint64_t>;

template <typename T>
DIOMP_INLINE T multiply(T a, T b) {
    if constexpr (complex_number<T>) {
        // operator* checks for infinities, which prevents vectorization.
        return {a.real() * b.real() - a.imag() * b.imag(),
                a.real() * b.imag() + a.imag() * b.real()};
    } else {
        return a * b;
    }
}

template <int op, typename T>
DIOMP_INLINE T combine_two(T a, T b) {
    if constexpr (op == OMPX_MIN) {
        return minimum(a, b);
    } else if constexpr (op == OMPX_MAX) {
        return maximum(a, b);
    } else if constexpr (small_float<T>) {
        auto const wide = combine_two<op, float>(widen(a), widen(b));
        if constexpr (std::same_as<T, float16>) {
            return narrow_float16(wide);
        } else {
            return narrow_bfloat16(wide);
        }
    } else if constexpr (op == OMPX_SUM) {
        if constexpr (whole_number<T>) {
            return static_cast<T>(static_cast<wrapping<T>>(a) + static_cast<wrapping<T>>(b));
        } else {
            return a + b;
        }
    } else if constexpr (op == OMPX_PROD) {
        if constexpr (whole_number<T>) {
            return static_cast<T>(static_cast<wrapping<T>>(a) * static_cast<wrapping<T>>(b));
        } else {
            return multiply(a, b);
        }
    } else if constexpr (op == OMPX_BAND) {
        return static_cast<T>(a & b);
    } else if constexpr (op == OMPX_BOR) {
        return static_cast<T>(a | b);
    } else if constexpr (op == OMPX_BXOR) {
        return static_cast<T>(a ^ b);
    } else if constexpr (op == OMPX_LAND) {
        return static_cast<T>((a != T{}) & (b != T{}));
    } else {
        static_assert(op == OMPX_LOR);
        return static_cast<T>((a != T{}) | (b != T{}));
    }
}

// The iterations are independent even if out is a: element i depends on element i only. The pragma
// states this; otherwise the compiler uses scalar code in exactly that case.
template <int op, typename T>
DIOMP_INLINE void combine_arrays(void *out, const void *a, const void *b, std::size_t count) {
    auto *const to = static_cast<T *>(out);
    auto const *const left = static_cast<const T *>(a);
    auto const *const right = static_cast<const T *>(b);
    DIOMP_INDEPENDENT_ITERATIONS
    for (std::size_t i = 0; i < count; ++i) {
        to[i] = combine_two<op, T>(left[i], right[i]);
    }
}

template <int op, typename T>
void combine_baseline(void *out, const void *a, const void *b, std::size_t count) {
    combine_arrays<op, T>(out, a, b, count);
}

#if defined(__x86_64__)
template <int op, typename T>
__attribute__((target("avx2"))) void combine_avx2(void *out, const void *a, const void *b,
                                                  std::size_t count) {
    combine_arrays<op, T>(out, a, b, count);
}

const bool has_avx2 = has_cpu_feature(cpu_feature::avx2);
#endif

template <int op, typename T>
combine_function choose([[maybe_unused]] instruction_set isa) {
#if defined(__x86_64__)
    // x87 has no vector instructions.
    if constexpr (!std::same_as<T, long double>) {
        if (isa == instruction_set::best && has_avx2) {
            return combine_avx2<op, T>;
        }
    }
#endif
    return combine_baseline<op, T>;
}

template <typename T>
combine_function choose_operator(ompx_op_t op, instruction_set isa) {
    constexpr bool is_bool = std::same_as<T, bool>;
    constexpr bool has_bits = std::integral<T>;
    switch (op) {
    case OMPX_SUM:
        return is_bool ? nullptr : choose<OMPX_SUM, std::conditional_t<is_bool, int, T>>(isa);
    case OMPX_PROD:
        return is_bool ? nullptr : choose<OMPX_PROD, std::conditional_t<is_bool, int, T>>(isa);
    default:
        break;
    }
    if constexpr (!complex_number<T>) {
        switch (op) {
        case OMPX_MIN:
            return choose<OMPX_MIN, T>(isa);
        case OMPX_MAX:
            return choose<OMPX_MAX, T>(isa);
        case OMPX_LAND:
            return choose<OMPX_LAND, T>(isa);
        case OMPX_LOR:
            return choose<OMPX_LOR, T>(isa);
        default:
            break;
        }
    }
    if constexpr (has_bits) {
        switch (op) {
        case OMPX_BAND:
            return choose<OMPX_BAND, T>(isa);
        case OMPX_BOR:
            return choose<OMPX_BOR, T>(isa);
        case OMPX_BXOR:
            return choose<OMPX_BXOR, T>(isa);
        default:
            break;
        }
    }
    return nullptr;
}

template <typename T>
void divide_all(void *values, std::size_t count, std::size_t num) {
    auto *const all = static_cast<T *>(values);
    for (std::size_t i = 0; i < count; ++i) {
        if constexpr (std::same_as<T, float16>) {
            all[i] = narrow_float16(widen(all[i]) / static_cast<float>(num));
        } else if constexpr (std::same_as<T, bfloat16>) {
            all[i] = narrow_bfloat16(widen(all[i]) / static_cast<float>(num));
        } else if constexpr (complex_number<T>) {
            all[i] /= static_cast<typename T::value_type>(num);
        } else if constexpr (std::signed_integral<T>) {
            all[i] = static_cast<T>(std::int64_t{all[i]} / static_cast<std::int64_t>(num));
        } else if constexpr (std::integral<T>) {
            all[i] = static_cast<T>(std::uint64_t{all[i]} / num);
        } else {
            all[i] /= static_cast<T>(num);
        }
    }
}

/// Returns use(T{}) for the C++ type of a type number; R{} for an unknown type.
template <typename R, typename Use>
R with_type(ompx_type_t type, Use &&use) {
    switch (type) {
    case OMPX_INT8:
        return use(std::int8_t{});
    case OMPX_UINT8:
        return use(std::uint8_t{});
    case OMPX_INT16:
        return use(std::int16_t{});
    case OMPX_UINT16:
        return use(std::uint16_t{});
    case OMPX_INT32:
        return use(std::int32_t{});
    case OMPX_UINT32:
        return use(std::uint32_t{});
    case OMPX_INT64:
        return use(std::int64_t{});
    case OMPX_UINT64:
        return use(std::uint64_t{});
    case OMPX_FLOAT16:
        return use(float16{});
    case OMPX_BFLOAT16:
        return use(bfloat16{});
    case OMPX_FLOAT:
        return use(float{});
    case OMPX_DOUBLE:
        return use(double{});
    case OMPX_LONG_DOUBLE:
        return use(static_cast<long double>(0));
    case OMPX_FLOAT_COMPLEX:
        return use(std::complex<float>{});
    case OMPX_DOUBLE_COMPLEX:
        return use(std::complex<double>{});
    case OMPX_BOOL:
        return use(bool{});
    default:
        return R{};
    }
}

} // namespace

average_function find_average(ompx_type_t type) {
    return with_type<average_function>(type, [](auto example) -> average_function {
        using T = decltype(example);
        if constexpr (std::same_as<T, bool>) {
            return nullptr;
        } else {
            return divide_all<T>;
        }
    });
}

combine_function find_kernel(ompx_type_t type, ompx_op_t op, instruction_set isa) {
    if (op == OMPX_MINLOC || op == OMPX_MAXLOC) {
        return find_pair_kernel(type, op);
    }
    return with_type<combine_function>(
        type, [op, isa](auto example) { return choose_operator<decltype(example)>(op, isa); });
}

} // namespace diomp::coll
