// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Steps by the host's threads, in host memory.
#include "common/clock.h"
#include "minimod/compute.h"
#include "minimod/minimod_tune.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

static tuned_rows rows;
static volatile float zero; // not known to the compiler

static void try_rows(const model *m, float *fields[2], row_form form, int x_begin, int x_end) {
    minimod_step(&m->part, &m->medium, fields[0], fields[1], x_begin, x_end, form);
}

int compute_choose(const char *form) {
    return strcmp(form, "auto") == 0 || strcmp(form, "rows") == 0;
}

void compute_where(char *text, size_t text_size) {
    snprintf(text, text_size, "%d threads each", omp_get_max_threads());
}

void compute_enter(const model *m, float *fields[2], float *seismogram, int steps) {
    (void)seismogram;
    (void)steps;
    minimod_clear(&m->part, fields[0]);
    minimod_clear(&m->part, fields[1]);
    rows = tune_rows(m, fields, try_rows);
}

double compute_bandwidth(const model *m, float *fields[2], const char **measured) {
    const size_t count = (size_t)m->part.local_nx * m->part.plane;
    float *const restrict a = grid_plane(&m->part, fields[0], 0);
    const float *const b = grid_plane(&m->part, fields[1], 0);
    const float *const c = m->medium.factor;
    const float s = zero;
    double best = INFINITY;
    for (int i = 0; i < 4; ++i) {
        const double start = seconds_now();
#pragma omp parallel for simd schedule(static)
        for (size_t at = 0; at < count; ++at) {
            a[at] = b[at] + s * c[at];
        }
        best = fmin(best, seconds_now() - start);
    }
    *measured = "triad";
    return 3 * sizeof(float) * (double)count / best;
}

void compute_advance(const model *m, float *field, float *now, int step, int x_begin, int x_end,
                     int is_cached) {
    model_advance(m, field, now, step, x_begin, x_end, is_cached ? rows.cache : rows.memory);
}

void compute_record(const model *m, float *field, float *seismogram, int step, int x_begin,
                    int x_end) {
    model_record(m, field, seismogram + (size_t)(step - 1) * (size_t)m->num_receivers, x_begin,
                 x_end);
}

void compute_leave(const model *m, float *fields[2], float *seismogram, int steps) {
    (void)m;
    (void)fields;
    (void)seismogram;
    (void)steps;
}
