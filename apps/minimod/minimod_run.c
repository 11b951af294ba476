// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "minimod/minimod_run.h"

#include "common/clock.h"
#include "common/comm.h"
#include "common/progress.h"
#include "minimod/compute.h"
#include "minimod/halo.h"
#include "minimod/minimod_digest.h"

#include <stdio.h>
#include <stdlib.h>

static void step_without_overlap(const model *m, float *field, float *now, int step,
                                 run_result *result) {
    const grid *g = &m->part;
    compute_advance(m, field, now, step, 0, g->local_nx);
    const double start = seconds_now();
    halo_start(g, field, step);
    const double started = seconds_now();
    halo_finish(g, step);
    result->put_seconds += started - start;
    result->wait_seconds += seconds_now() - started;
}

static void step_with_overlap(const model *m, float *field, float *now, int step,
                              run_result *result) {
    const grid *g = &m->part;
    // With fewer than two edges' planes, the edges are all there is.
    const int interior_end = g->local_nx >= 2 * HALO ? g->local_nx - HALO : HALO;
    compute_advance(m, field, now, step, 0, HALO);
    compute_advance(m, field, now, step, interior_end, g->local_nx);
    const double start = seconds_now();
    halo_start(g, field, step);
    const double started = seconds_now();
    const int stride = halo_progress_interval > 0 ? halo_progress_interval : interior_end;
    for (int x = HALO; x < interior_end; x += stride) {
        const int x_end = x + stride < interior_end ? x + stride : interior_end;
        compute_advance(m, field, now, step, x, x_end);
        if (halo_progress_interval > 0) {
            halo_progress();
        }
    }
    const double computed = seconds_now();
    halo_finish(g, step);
    result->put_seconds += started - start;
    result->wait_seconds += seconds_now() - computed;
}

void run_steps(const model *m, const minimod_options *o, float *fields[2], run_result *result) {
    const grid *g = &m->part;
    const size_t samples = (size_t)o->steps * (size_t)m->num_receivers;
    *result = (run_result){.seismogram = calloc(samples, sizeof(float))};
    if (result->seismogram == NULL) {
        fprintf(stderr, "minimod: no memory for the seismogram\n");
        comm_abort(1);
    }
    compute_enter(m, fields, result->seismogram, o->steps);
    halo_init(g);
    comm_barrier();
    result->copy_rate = compute_copy(m, fields);
    progress bar;
    progress_start(&bar, comm_name(), o->steps, g->rank == 0 ? o->progress : 0,
                   1e-9 * g->nx * g->ny * g->nz, "Gpoints/s");
    comm_barrier();
    const double start = seconds_now();
    for (int step = 1; step <= o->steps; ++step) {
        float *const field = fields[step % 2];
        float *const now = fields[(step + 1) % 2];
        if (o->overlap && g->ranks > 1) { // a single rank has no exchange to hide
            step_with_overlap(m, field, now, step, result);
        } else {
            step_without_overlap(m, field, now, step, result);
        }
        compute_record(m, field, result->seismogram, step);
        progress_update(&bar, step);
    }
    result->seconds = seconds_now() - start;
    comm_barrier();
    progress_finish(&bar);
    result->field = fields[o->steps % 2];
    compute_leave(m, fields, result->seismogram, o->steps);
    comm_sum_to_root(result->seismogram, samples);
    halo_free();
}

uint64_t run_digest(const model *m, float *field) {
    const grid *g = &m->part;
    uint64_t sum = 0;
    for (int x = 0; x < g->local_nx; ++x) {
        for (int y = 0; y < g->ny; ++y) {
            const float *row = grid_plane(g, field, x) + (size_t)y * g->pitch;
            sum += row_digest(row, g->nz, g->first_x + x, y);
        }
    }
    return sum;
}
