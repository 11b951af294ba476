// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Steps by the host's threads, in the memory where everything lies anyway.
#include "minimod/compute.h"

#include <omp.h>
#include <stdio.h>

void compute_where(char *text, size_t text_size) {
    snprintf(text, text_size, "%d threads each", omp_get_max_threads());
}

void compute_enter(const model *m, float *fields[2], float *seismogram, int steps) {
    (void)seismogram;
    (void)steps;
    minimod_clear(&m->part, fields[0]);
    minimod_clear(&m->part, fields[1]);
}

void compute_advance(const model *m, float *field, float *now, int step, int x_begin, int x_end) {
    model_advance(m, field, now, step, x_begin, x_end);
}

void compute_record(const model *m, float *field, float *seismogram, int step) {
    model_record(m, field, seismogram + (size_t)(step - 1) * (size_t)m->num_receivers);
}

void compute_leave(const model *m, float *fields[2], float *seismogram, int steps) {
    (void)m;
    (void)fields;
    (void)seismogram;
    (void)steps;
}
