// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// IEEE 754 binary16 and bfloat16 in memory; arithmetic uses float. Needs no library, since it is
// also compiled for GPUs.
#pragma once

#define DIOMP_INLINE inline __attribute__((always_inline))

namespace diomp {

struct float16 {
    unsigned short bits;
};
struct bfloat16 {
    unsigned short bits;
};

DIOMP_INLINE float widen(bfloat16 value) {
    return __builtin_bit_cast(float, unsigned{value.bits} << 16);
}

/// Round to nearest even; a NaN stays one.
DIOMP_INLINE bfloat16 narrow_bfloat16(float value) {
    auto const bits = __builtin_bit_cast(unsigned, value);
    unsigned const rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    bool const is_nan = (bits & 0x7fffffff) > 0x7f800000;
    return {static_cast<unsigned short>(is_nan ? (bits >> 16 | 0x40) : rounded)};
}

DIOMP_INLINE float widen(float16 value) {
    unsigned const sign = unsigned{value.bits & 0x8000U} << 16;
    unsigned const magnitude = value.bits & 0x7fffU;
    // After the shift the exponent is too small by 112; for infinities and NaNs it must be 255;
    // subnormal numbers are magnitude * 2^-24.
    unsigned const normal = (magnitude << 13) + (unsigned{112} << 23);
    unsigned const special = magnitude << 13 | 0x7f800000;
    auto const subnormal =
        __builtin_bit_cast(unsigned, static_cast<float>(static_cast<int>(magnitude)) * 0x1p-24F);
    unsigned const bits = magnitude >= 0x7c00 ? special : (magnitude < 0x400 ? subnormal : normal);
    return __builtin_bit_cast(float, bits | sign);
}

/// Round to nearest even; a NaN stays one.
DIOMP_INLINE float16 narrow_float16(float value) {
    auto const bits = __builtin_bit_cast(unsigned, value);
    unsigned const sign = bits >> 16 & 0x8000;
    unsigned const magnitude = bits & 0x7fffffff;
    unsigned const rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
    unsigned const normal = (rounded - (unsigned{112} << 23)) >> 13;
    // Below 2^-14 an addition of 0.5 leaves the rounded subnormal number in the low bits.
    unsigned const subnormal =
        __builtin_bit_cast(unsigned, __builtin_bit_cast(float, magnitude) + 0.5F) -
        __builtin_bit_cast(unsigned, 0.5F);
    unsigned const overflow = magnitude > 0x7f800000 ? 0x7e00 : 0x7c00;
    unsigned const half =
        rounded >= 0x47800000 ? overflow : (magnitude < 0x38800000 ? subnormal : normal);
    return {static_cast<unsigned short>(half | sign)};
}

} // namespace diomp
