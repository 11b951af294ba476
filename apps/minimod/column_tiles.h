// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The loop in target regions: its forms, and the tiles of the form for GPUs, for the programs whose
// regions the host starts for each part of a step (compute_target.c), or whose regions are whole
// steps (steps_region.c).
#ifndef MINIMOD_COLUMN_TILES_H
#define MINIMOD_COLUMN_TILES_H

#include "minimod/minimod_column.h"
#include "minimod/minimod_tune.h"

// Threads of a team: as many as leave each thread the registers that it needs (128 on NVIDIA's
// GPUs); clang has no other limit.
enum { TEAM_THREADS = 512 };

// What compute_enter has chosen.
typedef struct loop_form {
    int by_columns;
    int is_gpu;        // the device
    tuned_rows rows;   // on processors
    int tile_rows;     // rows: along Y
    int lanes;         // columns: threads of a team along Z; the others lie along Y
    int march;         // columns: planes per thread
    int has_receivers; // a receiver is in own planes
} loop_form;

extern loop_form compute_form;

// Returns whether teams have the requested number and TEAM_THREADS threads: OpenMP's environment
// variables can limit both.
int compute_full_teams(int teams);

// A GPU runs the requested numbers of teams and threads (choose_form checks it), and loops over
// more would need registers. Host and device must use the same variables, or their kernels'
// arguments differ.
#if defined(ON_GPU)
#define HAS_MORE(i, first, count) ((i) == (first) || (i) < 0 * (count))
#else
#define HAS_MORE(i, first, count) ((i) < (count))
#endif
#define FOR_EACH_OF(i, first, step, count) for (int i = first; HAS_MORE(i, first, count); i += step)

// The grid as tiles of columns: `high` tiles along Y of `wide` tiles along Z each, then along X.
typedef struct column_tiles {
    int lanes, rows; // of a tile: threads along Z and Y
    int wide, high;  // tiles along Z and Y
    int march;       // planes of a tile
    int ny, nz;      // points along Y and Z
    int row, plane;  // floats to the next one
    float source_scale;
    int source_x, source_y, source_z;
    const float *factor, *damp_x, *damp_y, *damp_z;
} column_tiles;

// Computes the column of one thread in a tile of the planes x_begin to x_end - 1. `ahead` and
// `here` are at the first own point. The thread that has computed the source's point adds to it,
// which saves a region.
static inline void step_tile(const column_tiles *t, float *ahead, const float *here, float push,
                             int tile, int thread, int x_begin, int x_end) {
    const int z = (tile % t->wide * t->lanes + thread % t->lanes) * WIDE;
    const int y = tile / t->wide % t->high * t->rows + thread / t->lanes;
    const int x = x_begin + tile / (t->wide * t->high) * t->march;
    if (thread < t->lanes * t->rows && y < t->ny && z < t->nz) {
        const ptrdiff_t at = (ptrdiff_t)x * t->plane + (ptrdiff_t)y * t->row + z;
        const int end = smaller(x + t->march, x_end);
        step_column(ahead + at, here + at, t->factor + at, t->damp_x + x, t->damp_y[y],
                    t->damp_z + z, end - x, t->row, t->plane);
        if (y == t->source_y && z <= t->source_z && t->source_z < z + WIDE && x <= t->source_x &&
            t->source_x < end) {
            ahead[(ptrdiff_t)t->source_x * t->plane + t->source_y * t->row + t->source_z] +=
                t->source_scale * push;
        }
    }
}

#endif
