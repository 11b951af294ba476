// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Steps in target regions of the default device. Everything is mapped once, before the first step;
// within a step, no field data passes between host and device.
//
// One form of the loop for processors and GPUs: tiles of rows x planes x points, distributed over
// all threads of the device, and the same code for a tile as on the host. What differs is the
// tile's size, which is data. On a processor (host devices) a tile is what fits its caches, and the
// points of a row are the lanes of vector instructions. On a GPU a tile is a column of X_BLOCK
// points along X, z is the fastest of the collapsed loops, and so neighbouring threads read
// neighbouring addresses. Nested loops of teams and of threads (`distribute` around `parallel for`)
// would also suit a GPU, but on a processor start a parallel region per row.
#include "common/device.h"
#include "minimod/compute.h"
#include "minimod/minimod_tile.h"

#include <omp.h>
#include <stdio.h>

static int tile_rows;   // along Y
static int tile_points; // along Z
static int row_points;  // of the loop over z
static int hears;       // some receiver is in own planes

void compute_where(char *text, size_t text_size) { device_describe(text, text_size); }

static void choose_tile(const grid *g) {
    const int gpu = device_is_gpu();
    tile_rows = gpu ? 1 : block_rows(g, omp_get_max_threads());
    tile_points = gpu ? 1 : Z_BLOCK;
    // On a processor whole cache lines; the points past the end of a row stay zero, since damp_z is
    // zero there.
    row_points = gpu ? g->nz : divide_up(g->nz, LINE) * LINE;
}

void compute_enter(const model *m, float *fields[2], float *seismogram, int steps) {
    const grid *g = &m->part;
    const medium *c = &m->medium;
    const size_t count = g->count;
    float *const a = fields[0];
    float *const b = fields[1];
    choose_tile(g);
    // The fields first: they are of one size on all ranks, so their device copies lie at the same
    // place of every rank's device, and one's own pointer names the neighbour's copy too.
#pragma omp target enter data map(alloc : a[0 : count])
#pragma omp target enter data map(alloc : b[0 : count])
#pragma omp target enter data map(to : m[0 : 1])
    // A member's array is attached to the device's copy of the member.
#pragma omp target enter data map(to : c->factor[0 : (size_t)g->local_nx * g->plane])
#pragma omp target enter data map(to : c->damp_x[0 : g->local_nx], c->damp_y[0 : g->ny])
#pragma omp target enter data map(to : c->damp_z[0 : divide_up(g->nz, LINE) * LINE])
#pragma omp target enter data map(to : m->receivers[0 : 3 * (size_t)m->num_receivers])
#pragma omp target enter data map(to : seismogram[0 : (size_t)steps * (size_t)m->num_receivers])
#pragma omp target teams distribute parallel for
    for (size_t i = 0; i < count; ++i) {
        a[i] = 0;
        b[i] = 0;
    }
    hears = 0;
    for (int r = 0; r < m->num_receivers; ++r) {
        hears |= model_receiver(m, a, r) != NULL;
    }
}

void compute_advance(const model *m, float *field, float *now, int step, int x_begin, int x_end) {
    const int ny = m->part.ny;
    const int nz = row_points;
    const int rows = tile_rows;
    const int points = tile_points;
#pragma omp target teams distribute parallel for collapse(3)
    for (int y = 0; y < ny; y += rows) {
        for (int x = x_begin; x < x_end; x += X_BLOCK) {
            for (int z = 0; z < nz; z += points) {
                const unsigned saved = flush_denormals();
                step_block(&m->part, &m->medium, field, now, x, smaller(x + X_BLOCK, x_end), y,
                           smaller(y + rows, ny), z, smaller(points, nz - z));
                restore_denormals(saved);
            }
        }
    }
    if (m->source_x >= x_begin && m->source_x < x_end) {
        const float push = model_push(m, step);
#pragma omp target
        *model_source(m, field) += m->source_scale * push;
    }
}

void compute_record(const model *m, float *field, float *seismogram, int step) {
    const int receivers = m->num_receivers;
    if (!hears) {
        return;
    }
#pragma omp target teams distribute parallel for
    for (int r = 0; r < receivers; ++r) {
        const float *point = model_receiver(m, field, r);
        if (point != NULL) {
            seismogram[(size_t)(step - 1) * (size_t)receivers + (size_t)r] = *point;
        }
    }
}

void compute_leave(const model *m, float *fields[2], float *seismogram, int steps) {
    const grid *g = &m->part;
    const medium *c = &m->medium;
    const size_t count = g->count;
    float *const last = fields[steps % 2];
    float *const other = fields[(steps + 1) % 2];
#pragma omp target exit data map(from : seismogram[0 : (size_t)steps * (size_t)m->num_receivers])
#pragma omp target exit data map(release : m->receivers[0 : 3 * (size_t)m->num_receivers])
#pragma omp target exit data map(release : c->damp_z[0 : divide_up(g->nz, LINE) * LINE])
#pragma omp target exit data map(release : c->damp_x[0 : g->local_nx], c->damp_y[0 : g->ny])
#pragma omp target exit data map(release : c->factor[0 : (size_t)g->local_nx * g->plane])
#pragma omp target exit data map(release : m[0 : 1])
#pragma omp target exit data map(from : last[0 : count]) map(release : other[0 : count])
}
