// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MATMUL_KERNEL_H
#define MATMUL_KERNEL_H

#include <stddef.h>

// c[rows][n] += a[rows][depth] * b[depth][n]; all row-major, a with `a_stride` doubles from row to
// row, b and c with n. Uses all OpenMP threads.
void matmul_add(double *c, const double *a, const double *b, size_t rows, size_t n, size_t depth,
                size_t a_stride);

#endif
