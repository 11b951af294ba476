// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The work of a device on its slab. Parallel regions without teams, for processors: the source and
// the receivers need the whole step, and so a step is one target region.
#ifndef MINIMOD_SLAB_KERNEL_H
#define MINIMOD_SLAB_KERNEL_H

#include "minimod/minimod_digest.h"
#include "minimod/minimod_tile.h"
#include "minimod/slabs.h"

#include <omp.h>

#pragma omp declare target
static inline void slab_clear(const slab_view *v, const float *row, int rows_alike) {
    const grid *g = &v->part;
#pragma omp parallel for
    for (size_t i = 0; i < g->count; ++i) {
        v->field[0][i] = v->field[1][i] = 0;
    }
    const size_t rows = (size_t)g->local_nx * (g->plane / g->pitch);
#pragma omp parallel for
    for (size_t r = 0; r < rows; ++r) {
        const int ghost = r % (g->plane / g->pitch) >= (size_t)g->ny;
        for (size_t z = 0; rows_alike && z < g->pitch; ++z) {
            v->medium.factor[r * g->pitch + z] = ghost ? 0 : row[z];
        }
    }
}

// Computes a block of rows from y on.
static inline void slab_block(const slab_view *v, float *field, float *now, int y, int rows) {
    const grid *g = &v->part;
    const int points = block_points(g, rows_untried());
    const unsigned saved = flush_denormals();
    for (int x = 0; x < g->local_nx; x += X_BLOCK) {
        step_block(g, &v->medium, field, now, x, smaller(x + X_BLOCK, g->local_nx), y,
                   smaller(y + rows, g->ny), 0, points, rows_untried().fetch);
    }
    restore_denormals(saved);
}

// Does the work of compute_advance and compute_record for all own planes.
static inline void slab_step(const slab_view *v, int step, float push) {
    const grid *g = &v->part;
    float *const field = v->field[step % 2];
    float *const now = v->field[(step + 1) % 2];
    // On LLVM's host devices a task runs on a thread of libomp's hidden team, alone. LLVM 19 aborts
    // if the next task is created while such a thread is within a parallel region, even of one.
    if (omp_in_parallel()) {
        const int rows = block_rows(g, 1);
        for (int y = 0; y < g->ny; y += rows) {
            slab_block(v, field, now, y, rows);
        }
    } else {
        const int rows = block_rows(g, omp_get_max_threads());
#pragma omp parallel for
        for (int y = 0; y < g->ny; y += rows) {
            slab_block(v, field, now, y, rows);
        }
    }
    if (v->has_source) {
        field[v->source] += v->source_scale * push;
    }
    for (int r = 0; r < v->num_local_receivers; ++r) {
        v->trace[(size_t)(step - 1) * (size_t)v->num_local_receivers + (size_t)r] =
            field[v->receiver_offsets[r]];
    }
}

static inline uint64_t slab_digest(const slab_view *v, float *field) {
    const grid *g = &v->part;
    uint64_t sum = 0;
#pragma omp parallel for collapse(2) reduction(+ : sum)
    for (int x = 0; x < g->local_nx; ++x) {
        for (int y = 0; y < g->ny; ++y) {
            const float *row = grid_plane(g, field, x) + (size_t)y * g->pitch;
            sum += row_digest(row, g->nz, g->first_x + x, y);
        }
    }
    return sum;
}
#pragma omp end declare target

#endif
