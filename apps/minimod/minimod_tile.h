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

enum { X_BLOCK = 4, Z_BLOCK = 96 };

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

#if !defined(ON_GPU)
// Computes the same part of a row in each of X_BLOCK planes: what the planes share along X is
// loaded once.
static inline void step_rows(float *restrict ahead, const float *restrict u,
                             const float *restrict factor, const float damp_xy[X_BLOCK],
                             const float *restrict damp_z, ptrdiff_t nz, ptrdiff_t row,
                             ptrdiff_t plane) {
    if (nz % LINE != 0) {
        __builtin_unreachable();
    }
#pragma omp simd
    for (ptrdiff_t z = 0; z < nz; ++z) {
        float column[X_BLOCK + 2 * HALO];
        for (int k = 0; k < X_BLOCK + 2 * HALO; ++k) {
            column[k] = u[z + (k - HALO) * plane];
        }
        for (int k = 0; k < X_BLOCK; ++k) {
            const float *const v = u + k * plane;
            const float *const at = column + k + HALO;
            const float ring1 =
                (v[z - 1] + v[z + 1]) + (v[z - row] + v[z + row]) + (at[-1] + at[1]);
            const float ring2 =
                (v[z - 2] + v[z + 2]) + (v[z - 2 * row] + v[z + 2 * row]) + (at[-2] + at[2]);
            const float ring3 =
                (v[z - 3] + v[z + 3]) + (v[z - 3 * row] + v[z + 3 * row]) + (at[-3] + at[3]);
            const float ring4 =
                (v[z - 4] + v[z + 4]) + (v[z - 4 * row] + v[z + 4 * row]) + (at[-4] + at[4]);
            const float ring[HALO] = {ring1, ring2, ring3, ring4};
            float *const to = ahead + z + k * plane;
            *to = step_point(*at, ring, factor[z + k * plane], damp_xy[k] * damp_z[z], *to);
        }
    }
}

// Computes a row in each of X_BLOCK planes, cache line by cache line, and prefetches the lines of
// the next row that the step reads from memory. In between they find a line fill buffer; all
// prefetches of a row at once would wait for one another.
static inline void step_rows_fetching(float *restrict ahead, const float *restrict u,
                                      const float *restrict factor, const float damp_xy[X_BLOCK],
                                      const float *restrict damp_z, ptrdiff_t nz, ptrdiff_t row,
                                      ptrdiff_t plane) {
    for (ptrdiff_t z = 0; z < nz; z += LINE) {
        for (int k = 0; k < X_BLOCK; ++k) {
            const ptrdiff_t next = z + row + k * plane;
            __builtin_prefetch(ahead + next, 1);
            __builtin_prefetch(u + next + HALO * plane);
            __builtin_prefetch(factor + next);
        }
        step_rows(ahead + z, u + z, factor + z, damp_xy, damp_z + z, LINE, row, plane);
    }
}
#endif

// Computes X_BLOCK planes or fewer, rows y_begin to y_end - 1, nz points of each row from z_begin
// on. What neighbouring points share comes from the second-level cache at most.
static inline void step_block(const grid *g, const medium *m, float *previous, float *now,
                              int x_begin, int x_end, int y_begin, int y_end, int z_begin, int nz,
                              int fetch) {
    const ptrdiff_t row = (ptrdiff_t)g->pitch;
    const ptrdiff_t plane = (ptrdiff_t)g->plane;
    const float *const damp_z = m->damp_z + z_begin;
    for (int y = y_begin; y < y_end; ++y) {
        const size_t at = (size_t)y * g->pitch + (size_t)z_begin;
        float *const ahead = grid_plane(g, previous, x_begin) + at;
        const float *const u = grid_plane(g, now, x_begin) + at;
        const float *const factor = m->factor + (size_t)x_begin * g->plane + at;
#if !defined(ON_GPU)
        if (x_end - x_begin == X_BLOCK) {
            float damp_xy[X_BLOCK];
            for (int k = 0; k < X_BLOCK; ++k) {
                damp_xy[k] = m->damp_x[x_begin + k] * m->damp_y[y];
            }
            if (fetch) {
                step_rows_fetching(ahead, u, factor, damp_xy, damp_z, nz, row, plane);
            } else {
                step_rows(ahead, u, factor, damp_xy, damp_z, nz, row, plane);
            }
            continue;
        }
#endif
        for (int k = 0; k < x_end - x_begin; ++k) {
            step_row(ahead + k * plane, u + k * plane, factor + k * plane,
                     m->damp_x[x_begin + k] * m->damp_y[y], damp_z, nz, row, plane);
        }
    }
    (void)fetch;
}

static inline int smaller(int a, int b) { return a < b ? a : b; }
static inline int divide_up(int a, int b) { return (a + b - 1) / b; }

// Points of a row per block: one for a thread of a GPU, else whole cache lines. The points past the
// end of a row stay zero, since damp_z is zero there.
static inline int block_points(const grid *g, row_form form) {
#if defined(ON_GPU)
    (void)g;
    (void)form;
    return 1;
#else
    const int lines = divide_up(g->nz, LINE);
    return (form.whole ? lines : divide_up(lines, divide_up(lines, Z_BLOCK / LINE))) * LINE;
#endif
}

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
