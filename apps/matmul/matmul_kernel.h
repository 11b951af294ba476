// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The product of a block, computed by the host's threads (matmul_kernel.c) or on OpenMP's default
// device (matmul_kernel_target.c). Each program links one of them.
#ifndef MATMUL_KERNEL_H
#define MATMUL_KERNEL_H

#include <stddef.h>

// For the report: "2 threads each".
void matmul_where(char *text, size_t text_size);

// Map and unmap memory for x[count] on the device of the products. Load copies the host's values to
// the device, unload copies them back.
void matmul_map(double *x, size_t count);
void matmul_load(double *x, size_t count);
void matmul_unload(double *x, size_t count);
void matmul_unmap(double *x, size_t count);

// The address of x's copy on the device, and that if the device is a GPU, otherwise NULL.
double *matmul_device_address(double *x);
const void *matmul_gpu_address(double *x);

// c[rows][n] += a[rows][depth] * b[depth][n]; all row-major, a with `a_stride` doubles from row to
// row, b and c with n, and all within mapped arrays. Uses all OpenMP threads.
void matmul_add(double *c, const double *a, const double *b, size_t rows, size_t n, size_t depth,
                size_t a_stride);

#endif
