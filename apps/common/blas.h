// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The machine's BLAS, loaded at run time: cuBLAS, rocBLAS or hipBLAS for GPUs, any library with the
// interface CBLAS and 32-bit integers (OpenBLAS, BLIS, MKL) for processors. No vendor's headers are
// needed, and a program works without any BLAS.
//
// One thread at a time may use a `blas`.
#ifndef APPS_COMMON_BLAS_H
#define APPS_COMMON_BLAS_H

#include <stddef.h>

typedef struct blas blas;

// A row-major matrix; `stride` is the distance between rows in elements.
typedef struct blas_matrix {
    const void *data; // on the GPU, or in the host's memory
    size_t stride;
    int transposed; // use the transposed matrix
} blas_matrix;

typedef struct blas_product {
    size_t rows, columns, depth; // c is rows x columns, a is rows x depth as used
    blas_matrix a, b;
    void *c;
    size_t c_stride;
    int accumulate; // c += a b; otherwise c = a b, whatever c was
} blas_product;

// Opens the BLAS for a GPU, if `gpu` is an address in its memory, or for processors, if it is NULL.
// `choice`: "auto" for the first that works of those that the loader finds, "off" for none, or the
// name of a library's file. Returns NULL if there is none; `reason` says why, for "auto" of the
// last one tried, and is empty for "off".
blas *blas_open(const char *choice, const void *gpu, char *reason, size_t reason_size);
// Returns 1 if `choice` names a library, which the user wants and no other.
int blas_required(const char *choice);
void blas_close(blas *b); // NULL: nothing
// "cuBLAS (libcublas.so.13)"; for processors with the number of threads.
const char *blas_name(const blas *b);

// Computes a product of doubles or of floats. On a GPU it is started, after the preceding ones have
// finished; its matrices must not be used before blas_wait. Dimensions and strides must be below
// 2^31. Returns 0, or the library's error code.
int blas_doubles(blas *b, const blas_product *p);
int blas_floats(blas *b, const blas_product *p);
// Waits for all products; calls `poll`, unless NULL, again and again meanwhile. Returns 0, or the
// error code of the GPU's runtime.
int blas_wait(blas *b, void (*poll)(void));

#endif
