// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The matrices of the products, and how they are split.
#ifndef MATMUL_VALUES_H
#define MATMUL_VALUES_H

#include <stddef.h>

// First of the rows or columns of part number `part` of `parts`; those of the first parts have one
// more if n is not divisible.
static inline size_t part_first(size_t n, int part, int parts) {
    const size_t extra = n % (size_t)parts;
    const size_t p = (size_t)part;
    return p * (n / (size_t)parts) + (p < extra ? p : extra);
}

// Small integers, so that every product is exact in whatever order it is summed.
static inline double a_value(size_t i, size_t j) { return (double)((i * 7 + j * 13) % 17) - 8; }
static inline double b_value(size_t i, size_t j) {
    return (double)((i * 5 + j * 11 + i * j) % 19) - 9;
}
static inline double c_value(size_t n, size_t i, size_t j) {
    double sum = 0;
    for (size_t k = 0; k < n; ++k) {
        sum += a_value(i, k) * b_value(k, j);
    }
    return sum;
}

#endif
