// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "common/progress.h"
#include "minimod/minimod_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct difference {
    double largest;       // |a - b|
    double largest_value; // |b|
    size_t differing;     // values that are not equal (including NaN)
} difference;

static void compare_value(difference *d, float a, float b) {
    const double gap = fabs((double)a - (double)b);
    if (!(gap == 0)) {
        ++d->differing;
    }
    if (!(gap <= d->largest)) { // also true for NaN, which then stays
        d->largest = gap;
    }
    if (fabs((double)b) > d->largest_value) {
        d->largest_value = fabs((double)b);
    }
}

static difference compare_fields(const grid *g, const float *whole, float *single) {
    difference d = {0, 0, 0};
    for (int x = 0; x < g->nx; ++x) {
        const float *a = whole + (size_t)x * g->plane;
        const float *b = grid_plane(g, single, x);
        for (int y = 0; y < g->ny; ++y) {
            for (int z = 0; z < g->nz; ++z) {
                const size_t at = (size_t)y * g->pitch + (size_t)z;
                compare_value(&d, a[at], b[at]);
            }
        }
    }
    return d;
}

static int print_verdict(const char *what, const difference *d) {
    const int good = d->largest <= 1e-6 * d->largest_value && d->largest_value > 0;
    if (good && d->differing == 0) {
        printf("check       %s equals the one-rank result bit for bit\n", what);
    } else if (good) {
        printf("check       %s is within %.1e of the one-rank result\n", what,
               d->largest / d->largest_value);
    } else {
        printf("check       FAILED: %s differs from the one-rank result in %zu values, by up to %g "
               "(largest value %g)\n",
               what, d->differing, d->largest, d->largest_value);
    }
    return good;
}

int run_check(const minimod_options *o, double slowest, double fastest, const float *whole,
              const float *seismogram) {
    char message[512];
    double ignored[2];
    model m;
    if (model_load(&m, o, 0, 1, &ignored[0], &ignored[1], message, sizeof message) != 0 ||
        model_complete(&m, o, slowest, fastest, message, sizeof message) != 0) {
        printf("check       FAILED: %s\n", message);
        return 0;
    }
    const grid *g = &m.part;
    const size_t bytes = (g->count * sizeof(float) + 63) / 64 * 64;
    float *fields[2] = {aligned_alloc(64, bytes), aligned_alloc(64, bytes)};
    float *trace = calloc((size_t)m.num_receivers, sizeof(float));
    if (fields[0] == NULL || fields[1] == NULL || trace == NULL) {
        printf("check       FAILED: no memory for the whole grid on one rank\n");
        return 0;
    }
    minimod_clear(g, fields[0]);
    minimod_clear(g, fields[1]);
    difference trace_difference = {0, 0, 0};
    progress bar;
    progress_start(&bar, "one rank", o->steps, o->progress, 1e-9 * g->nx * g->ny * g->nz,
                   "Gpoints/s");
    for (int step = 1; step <= o->steps; ++step) {
        model_advance(&m, fields[step % 2], fields[(step + 1) % 2], step, 0, g->nx, rows_untried());
        model_record(&m, fields[step % 2], trace, 0, m.part.local_nx);
        for (int r = 0; r < m.num_receivers; ++r) {
            const size_t at = (size_t)(step - 1) * (size_t)m.num_receivers + (size_t)r;
            compare_value(&trace_difference, seismogram[at], trace[r]);
        }
        progress_update(&bar, step);
    }
    progress_finish(&bar);
    const difference field_difference = compare_fields(g, whole, fields[o->steps % 2]);
    const int good_field = print_verdict("wavefield", &field_difference);
    // In a short run no wave may have reached the receivers; then both are zero.
    trace_difference.largest_value =
        trace_difference.largest_value > 0 ? trace_difference.largest_value : 1;
    const int good_traces = print_verdict("seismogram", &trace_difference);
    free(fields[0]);
    free(fields[1]);
    free(trace);
    model_free(&m);
    return good_field && good_traces;
}
