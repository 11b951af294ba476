// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The products of a rank: by the machine's BLAS, or by the kernel that the program links
// (matmul_kernel.h) if there is none.
#ifndef MATMUL_PRODUCT_H
#define MATMUL_PRODUCT_H

#include <stddef.h>

// Selects the BLAS by --blas (common/blas.h); `mapped` is any mapped array. Returns 0, with a
// message, if the user named a library that cannot be used.
int product_open(const char *choice, double *mapped, char *message, size_t message_size);
void product_close(void);

// For the report: the library, or the kernel and why there is no library.
const char *product_name(void);
int product_by_blas(void);

// matmul_add by what was selected; complete on return. Meanwhile `poll`, unless NULL, is called now
// and then. Ends the job if the library fails.
void product_add(double *c, double *a, double *b, size_t rows, size_t n, size_t depth,
                 size_t a_stride, void (*poll)(void));

#endif
