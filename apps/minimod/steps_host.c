// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Each step driven by the host: computation and exchange are calls.
#include "common/clock.h"
#include "minimod/compute.h"
#include "minimod/halo.h"
#include "minimod/steps.h"

#include <string.h>

int steps_choose(const minimod_options *o) { return strcmp(o->region, "auto") == 0 && !o->teams; }

void steps_init(const model *m, const minimod_options *o, float *fields[2], float *seismogram) {
    (void)o;
    (void)fields;
    (void)seismogram;
    halo_init(&m->part);
}

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

void steps_run(const model *m, const minimod_options *o, float *fields[2], run_result *result,
               progress *bar) {
    for (int step = 1; step <= o->steps; ++step) {
        float *const field = fields[step % 2];
        float *const now = fields[(step + 1) % 2];
        if (o->overlap && m->part.ranks > 1) { // a single rank has no exchange to hide
            step_with_overlap(m, field, now, step, result);
        } else {
            step_without_overlap(m, field, now, step, result);
        }
        compute_record(m, field, result->seismogram, step);
        progress_update(bar, step);
    }
}

void steps_free(void) { halo_free(); }
