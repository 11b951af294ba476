// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "minimod/minimod_run.h"

#include "common/clock.h"
#include "common/comm.h"
#include "common/progress.h"
#include "minimod/compute.h"
#include "minimod/minimod_digest.h"
#include "minimod/steps.h"

#include <stdio.h>
#include <stdlib.h>

void run_steps(const model *m, const minimod_options *o, float *fields[2], run_result *result) {
    const grid *g = &m->part;
    const size_t samples = (size_t)o->steps * (size_t)m->num_receivers;
    *result = (run_result){.seismogram = calloc(samples, sizeof(float))};
    if (result->seismogram == NULL) {
        fprintf(stderr, "minimod: no memory for the seismogram\n");
        comm_abort(1);
    }
    compute_enter(m, fields, result->seismogram, o->steps);
    steps_init(m, o, fields, result->seismogram);
    comm_barrier();
    result->bandwidth = compute_bandwidth(m, fields, &result->bandwidth_of);
    progress bar;
    progress_start(&bar, comm_name(), o->steps, g->rank == 0 ? o->progress : 0,
                   1e-9 * g->nx * g->ny * g->nz, "Gpoints/s");
    comm_barrier();
    const double start = seconds_now();
    steps_run(m, o, fields, result, &bar);
    result->seconds = seconds_now() - start;
    comm_barrier();
    progress_finish(&bar);
    result->field = fields[o->steps % 2];
    compute_leave(m, fields, result->seismogram, o->steps);
    comm_sum_to_root(result->seismogram, samples);
    steps_free();
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
