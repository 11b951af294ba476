// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Elements whose bits show in which order and by which rule they were combined: NaNs with payloads,
// zeros of both signs, infinities, subnormal numbers, numbers whose sums are rounded. And minimum
// and maximum of two of them, found from the fields of the format, without arithmetic.
#pragma once

#include "coll/reference.h"

#include <cfloat>
#include <cstring>
#include <optional>
#include <tuple>

namespace diomp::test {

/// Widths of the fields of a floating format; the leading bit of long double's significand does not
/// count.
struct float_format {
    unsigned exponent_bits;
    unsigned fraction_bits;
    [[nodiscard]] unsigned all_ones() const { return (1U << exponent_bits) - 1; }
    [[nodiscard]] std::uint64_t fraction_mask() const {
        return (std::uint64_t{1} << fraction_bits) - 1;
    }
};

/// nullopt: the type is not of floating point, or has a format of more than 80 bits.
inline std::optional<float_format> format_of(ompx_type_t type) {
    switch (type) {
    case OMPX_FLOAT16:
        return float_format{5, 10};
    case OMPX_BFLOAT16:
        return float_format{8, 7};
    case OMPX_FLOAT:
    case OMPX_FLOAT_COMPLEX:
        return float_format{8, 23};
    case OMPX_DOUBLE:
    case OMPX_DOUBLE_COMPLEX:
        return float_format{11, 52};
    case OMPX_LONG_DOUBLE:
        return LDBL_MANT_DIG == 64 ? std::optional(float_format{15, 63}) : std::nullopt;
    default:
        return std::nullopt;
    }
}

/// A number of a format, apart from its encoding.
struct fields {
    bool negative = false;
    unsigned exponent = 0;
    std::uint64_t fraction = 0;
    friend bool operator==(const fields &, const fields &) = default;
};

inline bool is_nan(const fields &value, float_format of) {
    return value.exponent == of.all_ones() && value.fraction != 0;
}

inline void write_fields(std::byte *to, const fields &from, float_format as) {
    std::uint64_t const sign = from.negative ? 1 : 0;
    if (as.exponent_bits == 15) {
        std::uint64_t const leading = from.exponent == 0 ? 0 : std::uint64_t{1} << 63;
        std::uint64_t const significand = leading | from.fraction;
        auto const rest = static_cast<std::uint16_t>(sign << 15 | from.exponent);
        std::memcpy(to, &significand, sizeof(significand));
        std::memcpy(to + sizeof(significand), &rest, sizeof(rest));
        return;
    }
    std::uint64_t const bits = sign << (as.exponent_bits + as.fraction_bits) |
                               std::uint64_t{from.exponent} << as.fraction_bits | from.fraction;
    std::memcpy(to, &bits, (1 + as.exponent_bits + as.fraction_bits) / 8); // little-endian
}

inline fields read_fields(const std::byte *from, float_format as) {
    std::uint64_t bits = 0;
    if (as.exponent_bits == 15) {
        std::uint16_t rest = 0;
        std::memcpy(&bits, from, sizeof(bits));
        std::memcpy(&rest, from + sizeof(bits), sizeof(rest));
        return {rest >> 15 != 0, rest & as.all_ones(), bits & as.fraction_mask()};
    }
    std::memcpy(&bits, from, (1 + as.exponent_bits + as.fraction_bits) / 8);
    return {bits >> (as.exponent_bits + as.fraction_bits) != 0,
            static_cast<unsigned>(bits >> as.fraction_bits) & as.all_ones(),
            bits & as.fraction_mask()};
}

/// OMPX_MIN or OMPX_MAX as include/diomp.h defines them.
inline fields extreme(const fields &a, const fields &b, ompx_op_t op, float_format of) {
    if (is_nan(a, of) || is_nan(b, of)) {
        return {false, of.all_ones(), std::uint64_t{1} << (of.fraction_bits - 1)};
    }
    auto const magnitude = [](const fields &x) { return std::tuple(x.exponent, x.fraction); };
    bool const a_is_less = a.negative != b.negative ? a.negative
                           : a.negative             ? magnitude(b) < magnitude(a)
                                                    : magnitude(a) < magnitude(b);
    return a_is_less == (op == OMPX_MAX) ? b : a;
}

inline bool sums_with_nan_are_nan(ompx_op_t op) {
    return op == OMPX_SUM || op == OMPX_PROD || op == OMPX_AVG;
}

/// What member `member` has at `index`: by the index zeros, NaNs on all or one, numbers that sums
/// round, infinities, signalling NaNs among zeros, subnormal numbers, any finite ones.
inline fields special_number(std::size_t member, std::size_t index, float_format of) {
    std::uint64_t const random = scramble(member * 0x9e3779b9 + index * 0x51ed27 + 77);
    bool const negative = (random & 1) != 0;
    std::uint64_t const quiet = std::uint64_t{1} << (of.fraction_bits - 1);
    std::uint64_t const fraction = random >> 1 & of.fraction_mask();
    unsigned const near_one = (of.all_ones() >> 1) + static_cast<unsigned>(random >> 60 & 1);
    fields const nan{negative, of.all_ones(), quiet | fraction};
    fields const number{negative, near_one, fraction};
    switch (index % 8) {
    case 0:
        return {negative, 0, 0};
    case 1:
        return nan;
    case 2:
        return index / 8 % 5 == member ? nan : number;
    case 3:
        return number;
    case 4:
        return random >> 58 == 0 ? fields{negative, of.all_ones(), 0} : number;
    case 5:
        return random >> 61 == 0 ? fields{negative, of.all_ones(), (fraction & ~quiet) | 1}
                                 : fields{negative, 0, 0};
    case 6:
        return {negative, 0, fraction};
    default:
        return {negative, static_cast<unsigned>(random >> 32) % of.all_ones(), fraction};
    }
}

/// The same as an element of any type with arithmetic; padding differs between members.
inline void put_special(std::byte *to, std::size_t member, std::size_t index, ompx_type_t type) {
    std::size_t const unit = ompx_type_size(type);
    if (auto const format = format_of(type); format) {
        std::memset(to, static_cast<int>(member), unit);
        std::size_t const parts = is_complex(type) ? 2 : 1;
        for (std::size_t part = 0; part < parts; ++part) {
            write_fields(to + part * (unit / parts),
                         special_number(member, index + 3 * part, *format), *format);
        }
        return;
    }
    std::uint64_t random = scramble(member * 0x9e3779b9 + index * 0x51ed27);
    random = type == OMPX_BOOL ? random & 1 : random;
    std::memcpy(to, &random, unit);
}

/// Bytes of an element that count.
inline std::size_t counting_bytes(ompx_type_t type) {
    return type == OMPX_LONG_DOUBLE ? 10 : ompx_type_size(type);
}

} // namespace diomp::test
