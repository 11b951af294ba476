// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A tile of the grid, computed by one thread. Shared by the kernel on the host's threads
// (minimod_kernel.c) and the one in target regions (compute_target.c), so that both give the same
// bits.
#ifndef MINIMOD_TILE_H
#define MINIMOD_TILE_H

#include "minimod/minimod_kernel.h"

#if defined(__NVPTX__) || defined(__AMDGCN__)
#define ON_GPU 1
#elif defined(__SSE2__) // clang defines it for the GPUs of such a host too
#include <immintrin.h>
#define HAS_MXCSR 1
#endif

enum { X_BLOCK = 4, Z_BLOCK = 128 };

// One point a step ahead: ring[r] is the sum of its six neighbours r + 1 points away, `before` its
// value a step back. The expressions are the same in every form of the kernel, and the compiler
// contracts only within expressions (-ffp-contract=on), so that a result does not depend on where a
// loop starts.
static inline float step_point(float u, const float ring[HALO], float factor, float damp,
                               float before) {
    // Central differences of 8th order for the second derivative, points 0 to 4 away.
    const float c0 = -205.0f / 72.0f;
    const float c1 = 8.0f / 5.0f;
    const float c2 = -1.0f / 5.0f;
    const float c3 = 8.0f / 315.0f;
    const float c4 = -1.0f / 560.0f;
    const float laplacian =
        3.0f * c0 * u + c1 * ring[0] + c2 * ring[1] + c3 * ring[2] + c4 * ring[3];
    return damp * (2.0f * u + factor * laplacian - damp * before);
}

// Computes a part of a row; nz is a multiple of LINE, except on GPUs (there it may be a single
// point). Does not assume any alignment: the host's rows start at cache lines, but LLVM's host
// devices allocate with malloc.
static inline void step_row(float *restrict ahead, const float *restrict u,
                            const float *restrict factor, float damp_xy,
                            const float *restrict damp_z, ptrdiff_t nz, ptrdiff_t row,
                            ptrdiff_t plane) {
#if !defined(ON_GPU)
    if (nz % LINE != 0) {
        __builtin_unreachable(); // spares the compiler a remainder loop
    }
#pragma omp simd
#endif
    for (ptrdiff_t z = 0; z < nz; ++z) {
        const float ring1 =
            (u[z - 1] + u[z + 1]) + (u[z - row] + u[z + row]) + (u[z - plane] + u[z + plane]);
        const float ring2 = (u[z - 2] + u[z + 2]) + (u[z - 2 * row] + u[z + 2 * row]) +
                            (u[z - 2 * plane] + u[z + 2 * plane]);
        const float ring3 = (u[z - 3] + u[z + 3]) + (u[z - 3 * row] + u[z + 3 * row]) +
                            (u[z - 3 * plane] + u[z + 3 * plane]);
        const float ring4 = (u[z - 4] + u[z + 4]) + (u[z - 4 * row] + u[z + 4 * row]) +
                            (u[z - 4 * plane] + u[z + 4 * plane]);
        const float ring[HALO] = {ring1, ring2, ring3, ring4};
        ahead[z] = step_point(u[z], ring, factor[z], damp_xy * damp_z[z], ahead[z]);
    }
}

// Prefetches the three streams from memory one row ahead of their use: the hardware prefetcher
// stops between the short parts of rows that the blocking makes (1.4 times faster with
// prefetching).
static inline void fetch_ahead(const float *ahead, const float *u_front, const float *factor,
                               int nz) {
    for (int z = 0; z < nz; z += LINE) {
        __builtin_prefetch(ahead + z, 1);
        __builtin_prefetch(u_front + z);
        __builtin_prefetch(factor + z);
    }
}

// Computes X_BLOCK planes, rows y_begin to y_end - 1, Z_BLOCK points of each row: data that
// neighbouring points share then stays in the first-level cache (12 rows along X, 9 along Y in each
// of 4 planes).
static inline void step_block(const grid *g, const medium *m, float *previous, float *now,
                              int x_begin, int x_end, int y_begin, int y_end, int z_begin, int nz) {
    for (int y = y_begin; y < y_end; ++y) {
        const size_t at = (size_t)y * g->pitch + (size_t)z_begin;
        for (int x = x_begin; x < x_end; ++x) {
            float *const ahead = grid_plane(g, previous, x) + at;
            const float *const u = grid_plane(g, now, x) + at;
            const float *const factor = m->factor + (size_t)x * g->plane + at;
#if !defined(ON_GPU)
            fetch_ahead(ahead + g->pitch, u + HALO * g->plane + g->pitch, factor + g->pitch, nz);
#endif
            step_row(ahead, u, factor, m->damp_x[x] * m->damp_y[y], m->damp_z + z_begin, nz,
                     (ptrdiff_t)g->pitch, (ptrdiff_t)g->plane);
        }
    }
}

static inline int smaller(int a, int b) { return a < b ? a : b; }
static inline int divide_up(int a, int b) { return (a + b - 1) / b; }

// Rows per block: the planes that a block's sweep along X keeps reading should stay in half of a
// 1 MiB second-level cache, and the number of blocks is a multiple of the number of threads.
static inline int block_rows(const grid *g, int threads) {
    const size_t row_bytes = g->pitch * sizeof(float) * (2 * HALO + 3);
    const size_t fit = (512 << 10) / row_bytes;
    const int rows = fit > 2 * HALO + 8 ? (int)fit - 2 * HALO : 8;
    return divide_up(g->ny, divide_up(divide_up(g->ny, rows), threads) * threads);
}

// Ahead of a wave front the field fades through denormal numbers, which cost several times a normal
// operation. Each thread flushes them to zero within the kernel (and so on every rank alike).
static inline unsigned flush_denormals(void) {
#if defined(HAS_MXCSR)
    const unsigned saved = _mm_getcsr();
    _mm_setcsr(saved | 0x8040u); // flush to zero, denormals are zero
    return saved;
#else
    return 0;
#endif
}

static inline void restore_denormals(unsigned saved) {
#if defined(HAS_MXCSR)
    _mm_setcsr(saved);
#else
    (void)saved;
#endif
}

#endif
