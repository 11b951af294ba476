// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Each step driven by the host: computation and exchange are calls.
#include "common/clock.h"
#include "minimod/compute.h"
#include "minimod/halo.h"
#include "minimod/steps.h"

#include <stdio.h>
#include <string.h>

int steps_choose(const minimod_options *o, char *message, size_t size) {
    if (strcmp(o->region, "auto") == 0 && !o->teams) {
        return 1;
    }
    snprintf(message, size, "--region %s, --teams %d: minimod-region alone has %s", o->region,
             o->teams, "step, plan and run, and teams to choose");
    return 0;
}

void steps_init(const model *m, const minimod_options *o, float *fields[2], float *seismogram) {
    (void)o;
    (void)fields;
    (void)seismogram;
    halo_init(&m->part);
}

static void step_without_overlap(const model *m, float *field, float *now, int step,
                                 run_result *result) {
    const grid *g = &m->part;
    compute_advance(m, field, now, step, 0, g->local_nx, 0);
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
    compute_advance(m, field, now, step, 0, HALO, 0);
    compute_advance(m, field, now, step, interior_end, g->local_nx, 0);
    const double start = seconds_now();
    halo_start(g, field, step);
    const double started = seconds_now();
    const int stride = halo_progress_interval > 0 ? halo_progress_interval : interior_end;
    for (int x = HALO; x < interior_end; x += stride) {
        const int x_end = x + stride < interior_end ? x + stride : interior_end;
        compute_advance(m, field, now, step, x, x_end, 0);
        if (halo_progress_interval > 0) {
            halo_progress();
        }
    }
    const double computed = seconds_now();
    halo_finish(g, step);
    result->put_seconds += started - start;
    result->wait_seconds += seconds_now() - computed;
}

// Computes planes of a step, and stores what receivers there see.
static void compute_planes(const model *m, float *fields[2], int step, int x_begin, int x_end,
                           int is_cached, run_result *result) {
    if (x_begin < x_end) {
        float *const field = fields[step % 2];
        compute_advance(m, field, fields[(step + 1) % 2], step, x_begin, x_end, is_cached);
        compute_record(m, field, result->seismogram, step, x_begin, x_end);
    }
}

// Planes of the steps of a wavefront that do not depend on the neighbours' planes of these steps.
typedef struct wavefront {
    int first; // step
    int count; // steps
    int left;  // planes that each step loses at the left side, and at the right one
    int right;
    int planes;
} wavefront;

static int front_begin(const wavefront *w, int s) { return w->left * s; }
static int front_end(const wavefront *w, int s) { return w->planes - w->right * s; }

// Sweeps along X: each step follows the one before at a distance of HALO planes, so that a plane is
// computed several times while it is in a cache. With two fields that suffices: a step overwrites
// what the one before has read for the last time.
static void sweep(const model *m, const wavefront *w, float *fields[2], run_result *result) {
    const int sweep_end = front_end(w, 1) + HALO * (w->count - 1);
    for (int x = front_begin(w, 1); x < sweep_end; x += HALO) {
        for (int s = 1; s <= w->count; ++s) {
            const int begin = x - HALO * (s - 1);
            const int end = begin + HALO;
            compute_planes(m, fields, w->first + s - 1,
                           begin > front_begin(w, s) ? begin : front_begin(w, s),
                           end < front_end(w, s) ? end : front_end(w, s), s > 1, result);
        }
        if (halo_progress_interval > 0) {
            halo_progress();
        }
    }
}

// The steps of a wavefront: the first one's edges, which neighbours wait for, the sweep, then step
// by step the planes at the sides that wait for the neighbours.
static void steps_together(const model *m, const wavefront *w, float *fields[2],
                           run_result *result) {
    const grid *g = &m->part;
    for (int s = 1; s <= w->count; ++s) {
        const int step = w->first + s - 1;
        compute_planes(m, fields, step, 0, front_begin(w, s), 0, result);
        compute_planes(m, fields, step, front_end(w, s), w->planes, 0, result);
        const double start = seconds_now();
        halo_start(g, fields[step % 2], step);
        result->put_seconds += seconds_now() - start;
        if (s == 1) {
            sweep(m, w, fields, result);
        }
        const double computed = seconds_now();
        halo_finish(g, step);
        result->wait_seconds += seconds_now() - computed;
    }
}

static void run_wavefronts(const model *m, const minimod_options *o, float *fields[2],
                           run_result *result, progress *bar) {
    const grid *g = &m->part;
    wavefront w = {.left = g->rank > 0 ? HALO : 0,
                   .right = g->rank + 1 < g->ranks ? HALO : 0,
                   .planes = g->local_nx};
    // Each step's part must have planes.
    const int lost = w.left + w.right;
    const int most = lost > 0 && (g->local_nx - 1) / lost < o->wavefront ? (g->local_nx - 1) / lost
                                                                         : o->wavefront;
    for (w.first = 1; w.first <= o->steps; w.first += w.count) {
        const int left = o->steps - w.first + 1;
        w.count = most < 1 ? 1 : most < left ? most : left;
        steps_together(m, &w, fields, result);
        progress_update(bar, w.first + w.count - 1);
    }
}

void steps_run(const model *m, const minimod_options *o, float *fields[2], run_result *result,
               progress *bar) {
    if (o->wavefront > 1 && m->part.local_nx > 2 * HALO) {
        run_wavefronts(m, o, fields, result, bar);
        return;
    }
    for (int step = 1; step <= o->steps; ++step) {
        float *const field = fields[step % 2];
        float *const now = fields[(step + 1) % 2];
        if (o->overlap && m->part.ranks > 1) { // a single rank has no exchange to hide
            step_with_overlap(m, field, now, step, result);
        } else {
            step_without_overlap(m, field, now, step, result);
        }
        compute_record(m, field, result->seismogram, step, 0, m->part.local_nx);
        progress_update(bar, step);
    }
}

void steps_free(void) { halo_free(); }
