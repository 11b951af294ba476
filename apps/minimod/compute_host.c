// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Steps by the host's threads, in host memory.
#include "common/clock.h"
#include "minimod/compute.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

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
}

double compute_copy(const model *m, float *fields[2]) {
    const grid *g = &m->part;
    const size_t planes = g->count / g->plane;
    double best = INFINITY;
    for (int i = 0; i < 4; ++i) {
        const double start = seconds_now();
        // By rows as in minimod_clear, for memory near each thread.
#pragma omp parallel for schedule(static)
        for (size_t row = 0; row < g->plane; row += g->pitch) {
            for (size_t x = 0; x < planes; ++x) {
                memcpy(fields[0] + x * g->plane + row, fields[1] + x * g->plane + row,
                       g->pitch * sizeof(float));
            }
        }
        best = fmin(best, seconds_now() - start);
    }
    return 2 * sizeof(float) * (double)(planes * g->plane) / best;
}

void compute_advance(const model *m, float *field, float *now, int step, int x_begin, int x_end) {
    model_advance(m, field, now, step, x_begin, x_end);
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
