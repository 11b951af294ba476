// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the kernels that reduce arrays on a GPU are called, and what they are given. Needs no
// library, since it is compiled for GPUs too.
#pragma once

namespace diomp::device::kernels {

/// The only parameter of every kernel: dst[i] = sources[0][i] op sources[1][i] op ..., in this
/// order. dst may be one of the sources.
struct reduction_arguments {
    static constexpr unsigned most_sources = 64;
    static constexpr unsigned block_threads = 256; ///< of every launch

    unsigned long long count = 0; ///< elements
    unsigned long long packs = 0; ///< of 16 bytes, at the beginning; 0 if an address is not aligned
    unsigned long long divisor = 1; ///< of avg
    unsigned long long num_sources = 0;
    unsigned long long dst = 0;
    unsigned long long sources[most_sources] = {};
};

} // namespace diomp::device::kernels

// each(operator, element): there is a kernel diomp_reduce_<operator>_<element>. Whether integers
// have a sign counts for min, max and avg only; bitwise operators are the same for all widths.
#define DIOMP_REDUCTIONS_OF_WORDS(each, op) each(op, u8) each(op, u16) each(op, u32) each(op, u64)
#define DIOMP_REDUCTIONS_OF_FLOATS(each, op)                                                       \
    each(op, f16) each(op, bf16) each(op, f32) each(op, f64)
#define DIOMP_REDUCTIONS_OF_SIGNED(each, op) each(op, i8) each(op, i16) each(op, i32) each(op, i64)
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
                        each(bxor, u8)
