// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The physical problem on one rank's part of the grid: velocities, sponge, source, receivers.
#ifndef MINIMOD_MODEL_H
#define MINIMOD_MODEL_H

#include "minimod/grid.h"
#include "minimod/minimod_kernel.h"
#include "minimod/minimod_options.h"

#include <stddef.h>

typedef struct model {
    grid part;
    medium medium;
    float *velocity; // of own points while the model is built, laid out as medium.factor; then NULL
    double dt;
    double frequency;
    int source_x;     // local x of the source; outside 0 .. local_nx - 1 if it is on another rank
    size_t source_at; // its offset within the plane
    float source_scale;
    int *receivers; // [num_receivers][3], indices in the whole grid, the same on every rank
    int num_receivers;
} model;

// Step 1: reads or makes this rank's velocities; *slowest and *fastest receive their range. Returns
// 0, or -1 with a message. Step 2, with the range over all ranks: time step, wavelet, coefficients.
int model_load(model *m, const minimod_options *o, int rank, int ranks, double *slowest,
               double *fastest, char *message, size_t message_size);
int model_complete(model *m, const minimod_options *o, double slowest, double fastest,
                   char *message, size_t message_size);
void model_free(model *m);

// Computes own planes x_begin to x_end - 1 of `step` (counted from 1), with the source if it lies
// there. `field` holds step - 2 before and `step` afterwards; `now` holds step - 1.
void model_advance(const model *m, float *field, float *now, int step, int x_begin, int x_end,
                   row_form form);

// Returns the value that the source adds to its point in `step`, before scaling with source_scale.
float model_push(const model *m, int step);

static inline float *model_source(const model *m, float *field) {
    return grid_plane(&m->part, field, m->source_x) + m->source_at;
}

// Returns the point of receiver r; NULL if it is in none of the own planes x_begin to x_end - 1.
static inline float *model_receiver(const model *m, float *field, int r, int x_begin, int x_end) {
    const grid *g = &m->part;
    const int *at = m->receivers + 3 * (size_t)r;
    const int x = at[0] - g->first_x;
    if (x < x_begin || x >= x_end) {
        return NULL;
    }
    return grid_plane(g, field, x) + (size_t)at[1] * g->pitch + (size_t)at[2];
}

// Stores the values at the receivers in own planes x_begin to x_end - 1 into trace[r]; does not
// change the others.
void model_record(const model *m, float *field, float *trace, int x_begin, int x_end);

#endif
