// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Names and parameters of the kernels that reduce arrays on a GPU. Needs no library, because it is
// also compiled for GPUs.
#pragma once

namespace diomp::device::kernels {

/// The only parameter of every kernel: dst[i] = sources[0][i] op sources[1][i] op ..., in this
/// order. dst may be one of the sources.
struct reduction_arguments {
    static constexpr unsigned max_sources = 64;
    static constexpr unsigned block_threads = 256; ///< threads per block of every launch

    unsigned long long count = 0; ///< elements
    unsigned long long num_vectors =
        0; ///< of 16 bytes, from the beginning; 0 if an address is not aligned
    unsigned long long divisor = 1; ///< for avg
    unsigned long long num_sources = 0;
    unsigned long long dst = 0;
    unsigned long long sources[max_sources] = {};
};

} // namespace diomp::device::kernels

// each(operator, element): there is a kernel diomp_reduce_<operator>_<element>. The signedness of
// integers matters for min, max and avg only; bitwise operators are the same for all widths.
#define DIOMP_REDUCTIONS_OF_WORDS(each, op) each(op, u8) each(op, u16) each(op, u32) each(op, u64)
#define DIOMP_REDUCTIONS_OF_FLOATS(each, op)                                                       \
    each(op, f16) each(op, bf16) each(op, f32) each(op, f64)
#define DIOMP_REDUCTIONS_OF_SIGNED(each, op) each(op, i8) each(op, i16) each(op, i32) each(op, i64)
#define DIOMP_REDUCTIONS_OF_PAIRS(each, op)                                                        \
    each(op, f32_i32) each(op, f64_i32) each(op, i64_i32) each(op, i32_i32) each(op, i16_i32)      \
        each(op, f32_f32) each(op, f64_f64) each(op, i64_i64) each(op, f64_i64)
#define DIOMP_REDUCTIONS_OF_NUMBERS(each, op)                                                      \
    DIOMP_REDUCTIONS_OF_WORDS(each, op) DIOMP_REDUCTIONS_OF_FLOATS(each, op)
#define DIOMP_REDUCTIONS(each)                                                                     \
    DIOMP_REDUCTIONS_OF_NUMBERS(each, sum)                                                         \
    DIOMP_REDUCTIONS_OF_NUMBERS(each, prod)                                                        \
    each(prod, c32) each(prod, c64) DIOMP_REDUCTIONS_OF_NUMBERS(each, min)                         \
        DIOMP_REDUCTIONS_OF_SIGNED(each, min) DIOMP_REDUCTIONS_OF_NUMBERS(each, max)               \
            DIOMP_REDUCTIONS_OF_SIGNED(each, max) DIOMP_REDUCTIONS_OF_NUMBERS(each, avg)           \
                DIOMP_REDUCTIONS_OF_SIGNED(each, avg) DIOMP_REDUCTIONS_OF_NUMBERS(each, land)      \
                    DIOMP_REDUCTIONS_OF_NUMBERS(each, lor) each(band, u8) each(bor, u8)            \
                        each(bxor, u8) DIOMP_REDUCTIONS_OF_PAIRS(each, minloc)                     \
                            DIOMP_REDUCTIONS_OF_PAIRS(each, maxloc)
