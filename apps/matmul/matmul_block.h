// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Blocked product for processors: a thread packs a DEPTH x WIDTH block of b into panels TILE_N
// wide, which then stay in its second-level cache while tiles of TILE_M x TILE_N of c pass through
// registers. Used by the kernel on the host's threads and by the one in target regions.
#ifndef MATMUL_BLOCK_H
#define MATMUL_BLOCK_H

#include <stddef.h>
#include <string.h>

#if defined(__AVX512F__)
enum { LANES = 8, TILE_M = 8 };
#elif defined(__AVX__)
enum { LANES = 4, TILE_M = 6 };
#else
enum { LANES = 2, TILE_M = 6 };
#endif
enum { TILE_N = 2 * LANES, DEPTH = 256, WIDTH = 128 };

typedef double vec __attribute__((vector_size(LANES * sizeof(double))));

static inline size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

// panels[p][k][TILE_N], zero past the last column.
static inline void pack(double *panels, const double *b, size_t n, size_t width, size_t depth) {
    for (size_t j = 0; j < width; j += TILE_N) {
        const size_t used = smaller(TILE_N, width - j);
        for (size_t k = 0; k < depth; ++k) {
            double *row = panels + j * depth + k * TILE_N;
            memcpy(row, b + k * n + j, used * sizeof(double));
            memset(row + used, 0, (TILE_N - used) * sizeof(double));
        }
    }
}

// Computes one tile; the rows of a are given by pointers (the last ones repeat if there are fewer
// than TILE_M).
static inline void tile(double *c, size_t n, size_t rows, size_t columns,
                        const double *const a[TILE_M], const double *panel, size_t depth) {
    vec sum[TILE_M][2];
    memset(sum, 0, sizeof sum);
    for (size_t k = 0; k < depth; ++k) {
        const vec *const b = (const vec *)(panel + k * TILE_N);
        const vec b0 = b[0];
        const vec b1 = b[1];
        for (int i = 0; i < TILE_M; ++i) {
            sum[i][0] += a[i][k] * b0;
            sum[i][1] += a[i][k] * b1;
        }
    }
    for (size_t i = 0; i < rows; ++i) {
        const double *const from = (const double *)sum[i];
        for (size_t j = 0; j < columns; ++j) {
            c[i * n + j] += from[j];
        }
    }
}

static inline void block(double *c, const double *a, const double *panels, size_t rows, size_t n,
                         size_t width, size_t depth, size_t a_stride) {
    for (size_t i = 0; i < rows; i += TILE_M) {
        const size_t used = smaller(TILE_M, rows - i);
        const double *row[TILE_M];
        for (size_t t = 0; t < TILE_M; ++t) {
            row[t] = a + (i + smaller(t, used - 1)) * a_stride;
        }
        for (size_t j = 0; j < width; j += TILE_N) {
            tile(c + i * n + j, n, used, smaller(TILE_N, width - j), row, panels + j * depth,
                 depth);
        }
    }
}

// Computes the columns 0 to `width` - 1 of c; `panels` has space for DEPTH x WIDTH doubles.
static inline void columns(double *c, const double *a, const double *b, size_t rows, size_t n,
                           size_t width, size_t depth, size_t a_stride, double *panels) {
    for (size_t k = 0; k < depth; k += DEPTH) {
        const size_t thick = smaller(DEPTH, depth - k);
        pack(panels, b + k * n, n, width, thick);
        block(c, a + k, panels, rows, n, width, thick, a_stride);
    }
}

#endif
