// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a collective call must give, computed element by element from a formula that every rank can
// evaluate. Values are small, so that every type holds the results exactly.
#pragma once

#include "diomp.h"
#include "support/sanitized.h"

#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

namespace diomp::test {

DIOMP_NOT_INSTRUMENTED_BEGIN

/// An element, apart from its type. imaginary is 0 unless the type is complex.
struct value {
    std::int64_t real = 0;
    std::int64_t imaginary = 0;
};

inline bool is_complex(ompx_type_t type) {
    return type == OMPX_FLOAT_COMPLEX || type == OMPX_DOUBLE_COMPLEX;
}
inline bool is_floating(ompx_type_t type) {
    return type >= OMPX_FLOAT16 && type <= OMPX_LONG_DOUBLE;
}

inline bool makes_sense(ompx_type_t type, ompx_op_t op) {
    bool const bits = op == OMPX_BAND || op == OMPX_BOR || op == OMPX_BXOR;
    bool const arithmetic = op == OMPX_SUM || op == OMPX_PROD;
    if (is_complex(type)) {
        return arithmetic;
    }
    if (type == OMPX_BOOL) {
        return !arithmetic;
    }
    return !(bits && is_floating(type));
}

inline std::uint64_t scramble(std::uint64_t x) {
    x ^= x >> 31;
    x *= 0x7fb5d329728ea185ull;
    x ^= x >> 27;
    x *= 0x81dadef4bc2dd44dull;
    return x ^ x >> 33;
}

/// Element `index` that member `member` brings to a call.
inline value brought(std::uint64_t call, std::size_t member, std::size_t index, ompx_type_t type) {
    std::uint64_t const bits = scramble(call * 0x10001 + member * 0x9e37 + index * 0x51ed27);
    if (type == OMPX_BOOL) {
        return {static_cast<std::int64_t>(bits & 1), 0};
    }
    return {static_cast<std::int64_t>(bits % 3),
            is_complex(type) ? static_cast<std::int64_t>(bits / 3 % 3) - 1 : 0};
}

inline value combine(value a, value b, ompx_op_t op) {
    switch (op) {
    case OMPX_SUM:
        return {a.real + b.real, a.imaginary + b.imaginary};
    case OMPX_PROD:
        return {a.real * b.real - a.imaginary * b.imaginary,
                a.real * b.imaginary + a.imaginary * b.real};
    case OMPX_MIN:
        return {a.real < b.real ? a.real : b.real, 0};
    case OMPX_MAX:
        return {a.real < b.real ? b.real : a.real, 0};
    case OMPX_BAND:
        return {a.real & b.real, 0};
    case OMPX_BOR:
        return {a.real | b.real, 0};
    case OMPX_BXOR:
        return {a.real ^ b.real, 0};
    case OMPX_LAND:
        return {a.real != 0 && b.real != 0 ? 1 : 0, 0};
    case OMPX_LOR:
        return {a.real != 0 || b.real != 0 ? 1 : 0, 0};
    default:
        throw std::invalid_argument("no operator of reductions");
    }
}

template <typename T>
void put_as(std::byte *to, T element) {
    std::memcpy(to, &element, sizeof(element));
}

/// Writes the value as an element of the type.
inline void encode(std::byte *to, value from, ompx_type_t type) {
    switch (type) {
    case OMPX_INT8:
    case OMPX_UINT8:
        return put_as(to, static_cast<std::uint8_t>(from.real));
    case OMPX_INT16:
    case OMPX_UINT16:
        return put_as(to, static_cast<std::uint16_t>(from.real));
    case OMPX_INT32:
    case OMPX_UINT32:
        return put_as(to, static_cast<std::uint32_t>(from.real));
    case OMPX_INT64:
    case OMPX_UINT64:
        return put_as(to, static_cast<std::uint64_t>(from.real));
    case OMPX_FLOAT16:
        return put_as(to, static_cast<_Float16>(from.real));
    case OMPX_BFLOAT16: {
        auto const wide = static_cast<float>(from.real);
        std::uint32_t bits = 0;
        std::memcpy(&bits, &wide, sizeof(bits));
        return put_as(to, static_cast<std::uint16_t>(bits >> 16));
    }
    case OMPX_FLOAT:
        return put_as(to, static_cast<float>(from.real));
    case OMPX_DOUBLE:
        return put_as(to, static_cast<double>(from.real));
    case OMPX_LONG_DOUBLE: {
        // Ten of sixteen bytes count.
        std::memset(to, 0, sizeof(long double));
        auto const wide = static_cast<long double>(from.real);
        std::memcpy(to, &wide, 10);
        return;
    }
    case OMPX_FLOAT_COMPLEX:
        return put_as(to, std::complex<float>(static_cast<float>(from.real),
                                              static_cast<float>(from.imaginary)));
    case OMPX_DOUBLE_COMPLEX:
        return put_as(to, std::complex<double>(static_cast<double>(from.real),
                                               static_cast<double>(from.imaginary)));
    case OMPX_BOOL:
        return put_as(to, from.real != 0);
    default:
        throw std::invalid_argument("no type with arithmetic");
    }
}

template <typename T>
bool equal_as(const std::byte *a, const std::byte *b) {
    T left;
    T right;
    std::memcpy(&left, a, sizeof(left));
    std::memcpy(&right, b, sizeof(right));
    return left == right;
}

/// Equal as elements of the type: the padding of long double does not count, and a part of a
/// complex number may be -0.
inline bool equal_elements(const std::byte *a, const std::byte *b, ompx_type_t type) {
    if (type == OMPX_FLOAT_COMPLEX) {
        return equal_as<std::complex<float>>(a, b);
    }
    if (type == OMPX_DOUBLE_COMPLEX) {
        return equal_as<std::complex<double>>(a, b);
    }
    std::size_t const nbytes = type == OMPX_LONG_DOUBLE ? 10 : ompx_type_size(type);
    return std::memcmp(a, b, nbytes) == 0;
}

DIOMP_NOT_INSTRUMENTED_END
} // namespace diomp::test
