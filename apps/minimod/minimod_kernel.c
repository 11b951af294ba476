// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "minimod/minimod_kernel.h"

#include <omp.h>
#include <string.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

enum { X_BLOCK = 4, Z_BLOCK = 128 };

// Central differences of 8th order for the second derivative, points 0 to 4 away.
static const float C0 = -205.0f / 72.0f;
static const float C1 = 8.0f / 5.0f;
static const float C2 = -1.0f / 5.0f;
static const float C3 = 8.0f / 315.0f;
static const float C4 = -1.0f / 560.0f;

// Part of a row; nz is a multiple of LINE. The expression is the same for every point, and the
// compiler contracts only within expressions (-ffp-contract=on), so that a point's result does not
// depend on where the loop starts.
static inline void step_row(float *restrict ahead, const float *restrict u,
                            const float *restrict factor, float damp_xy,
                            const float *restrict damp_z, ptrdiff_t nz, ptrdiff_t row,
                            ptrdiff_t plane) {
    if (nz % LINE != 0) {
        __builtin_unreachable(); // spares the compiler a remainder loop
    }
#pragma omp simd aligned(ahead, factor, damp_z : 64)
    for (ptrdiff_t z = 0; z < nz; ++z) {
        const float ring1 =
            (u[z - 1] + u[z + 1]) + (u[z - row] + u[z + row]) + (u[z - plane] + u[z + plane]);
        const float ring2 = (u[z - 2] + u[z + 2]) + (u[z - 2 * row] + u[z + 2 * row]) +
                            (u[z - 2 * plane] + u[z + 2 * plane]);
        const float ring3 = (u[z - 3] + u[z + 3]) + (u[z - 3 * row] + u[z + 3 * row]) +
                            (u[z - 3 * plane] + u[z + 3 * plane]);
        const float ring4 = (u[z - 4] + u[z + 4]) + (u[z - 4 * row] + u[z + 4 * row]) +
                            (u[z - 4 * plane] + u[z + 4 * plane]);
        const float laplacian =
            3.0f * C0 * u[z] + C1 * ring1 + C2 * ring2 + C3 * ring3 + C4 * ring4;
        const float damp = damp_xy * damp_z[z];
        ahead[z] = damp * (2.0f * u[z] + factor[z] * laplacian - damp * ahead[z]);
    }
}

// The three streams that come from memory, one row ahead of their use: the hardware prefetcher
// gives up between the short pieces of rows that the blocking makes (1.4 times faster with it).
static inline void fetch_ahead(const float *ahead, const float *u_front, const float *factor,
                               int nz) {
    for (int z = 0; z < nz; z += LINE) {
        __builtin_prefetch(ahead + z, 1);
        __builtin_prefetch(u_front + z);
        __builtin_prefetch(factor + z);
    }
}

// X_BLOCK planes, rows y_begin to y_end - 1, Z_BLOCK points of each row: what neighbouring points
// share then stays in the first-level cache (12 rows along X, 9 along Y in each of 4 planes).
static void step_block(const grid *g, const medium *m, float *previous, float *now, int x_begin,
                       int x_end, int y_begin, int y_end, int z_begin, int nz) {
    for (int y = y_begin; y < y_end; ++y) {
        const size_t at = (size_t)y * g->pitch + (size_t)z_begin;
        for (int x = x_begin; x < x_end; ++x) {
            float *const ahead = grid_plane(g, previous, x) + at;
            const float *const u = grid_plane(g, now, x) + at;
            const float *const factor = m->factor + (size_t)x * g->plane + at;
            fetch_ahead(ahead + g->pitch, u + HALO * g->plane + g->pitch, factor + g->pitch, nz);
            step_row(ahead, u, factor, m->damp_x[x] * m->damp_y[y], m->damp_z + z_begin, nz,
                     (ptrdiff_t)g->pitch, (ptrdiff_t)g->plane);
        }
    }
}

// Rows per block: the planes that a block's sweep along X keeps reading should stay in half of a
// 1 MiB second-level cache.
static int block_rows(const grid *g) {
    const size_t row_bytes = g->pitch * sizeof(float) * (2 * HALO + 3);
    const size_t rows = (512 << 10) / row_bytes;
    return rows > 2 * HALO + 8 ? (int)rows - 2 * HALO : 8;
}

// Ahead of a wave front the field fades through denormal numbers, which cost several times a normal
// operation. Each thread flushes them to zero within the kernel (and so on every rank alike).
static unsigned flush_denormals(void) {
#if defined(__SSE2__)
    const unsigned saved = _mm_getcsr();
    _mm_setcsr(saved | 0x8040u); // flush to zero, denormals are zero
    return saved;
#else
    return 0;
#endif
}

static void restore_denormals(unsigned saved) {
#if defined(__SSE2__)
    _mm_setcsr(saved);
#else
    (void)saved;
#endif
}

static int smaller(int a, int b) { return a < b ? a : b; }
static int divide_up(int a, int b) { return (a + b - 1) / b; }

void minimod_step(const grid *g, const medium *m, float *previous, float *now, int x_begin,
                  int x_end) {
    if (x_end <= x_begin) {
        return;
    }
    const int threads = omp_get_max_threads();
    // As many blocks as make an even share for each thread.
    const int blocks = divide_up(divide_up(g->ny, block_rows(g)), threads) * threads;
    const int rows = divide_up(g->ny, blocks);
    // Whole cache lines: the points past the end of a row stay zero, since damp_z is zero there.
    const int row_points = divide_up(g->nz, LINE) * LINE;
#pragma omp parallel
    {
        const unsigned saved = flush_denormals();
#pragma omp for schedule(static) nowait
        for (int block = 0; block < blocks; ++block) {
            const int y = block * rows;
            const int y_end = smaller(y + rows, g->ny);
            for (int x = x_begin; x < x_end; x += X_BLOCK) {
                for (int z = 0; z < row_points; z += Z_BLOCK) {
                    step_block(g, m, previous, now, x, smaller(x + X_BLOCK, x_end), y, y_end, z,
                               smaller(Z_BLOCK, row_points - z));
                }
            }
        }
        restore_denormals(saved);
    }
}

void minimod_clear(const grid *g, float *field) {
    memset(field, 0, g->lead * sizeof(float));
    float *const first = grid_plane(g, field, -HALO);
    const size_t row_bytes = g->pitch * sizeof(float);
    const size_t planes = (size_t)g->max_nx + 2 * (size_t)HALO;
    const int rows = g->ny + HALO;
#pragma omp parallel for schedule(static)
    for (int y = 0; y < rows; ++y) {
        for (size_t x = 0; x < planes; ++x) {
            memset(first + x * g->plane + (size_t)y * g->pitch, 0, row_bytes);
        }
    }
    memset(first + planes * g->plane, 0, (g->count - g->lead - planes * g->plane) * sizeof(float));
}
