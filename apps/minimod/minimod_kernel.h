// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The numerical kernel: one step of the acoustic wave equation with constant density,
//     u_tt = v^2 (u_xx + u_yy + u_zz),
// 8th order in space, 2nd in time, with the absorbing sponge of Cerjan et al. (Geophysics 50,
// 1985).
#ifndef MINIMOD_KERNEL_H
#define MINIMOD_KERNEL_H

#include "minimod/grid.h"

// Time step limit: dt < LIMIT * dx / v_max for stability (von Neumann).
#define MINIMOD_STABILITY_LIMIT 0.4529

typedef struct medium {
    float *factor; // (v dt / dx)^2 at own points: factor[x * plane + y * pitch + z]
    float *damp_x; // of own planes; 1 inside, smaller in the sponge
    float *damp_y;
    float *damp_z; // aligned to a cache line, with zeros up to a multiple of LINE
} medium;

// How a tile takes its rows. Results are the same; which is fastest depends on the processor, and
// on whether the planes come from memory or from a cache (minimod_tune.h).
typedef struct row_form {
    int whole; // whole rows, which hardware prefetchers follow; else parts of them
    int fetch; // prefetch one row ahead of its use
} row_form;

// The best guess without a trial.
static inline row_form rows_untried(void) { return (row_form){.whole = 1, .fetch = 1}; }

// Fills `previous` (the field one step back) with the field one step ahead, for own planes from
// x_begin up to x_end - 1. Reads `now` up to HALO planes around them. Uses all OpenMP threads. The
// result at a point does not depend on how the planes are grouped into calls or split over ranks,
// nor on `form`.
void minimod_step(const grid *g, const medium *m, float *previous, float *now, int x_begin,
                  int x_end, row_form form);

// Zeroes a field; each thread first touches the memory that it will compute.
void minimod_clear(const grid *g, float *field);

#endif
