// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Penta-diagonal systems on all grid lines along x, then y, then z, as in an implicit step of
// alternating directions (the idea of NAS SP): diffusion with a coefficient at every point, and
// fourth-order smoothing. Independent fields are distributed.
#include "common/scatter.h"
#include "dpu/parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { LANES = 8, MAX_LINE = 512 }; // lines solved side by side, and their largest length

#define PENTA_SMOOTHING 0.25 // of the coefficient; rows are diagonally dominant

#pragma omp declare target
// Row i of the matrix is smooth, -near, 1 + 2 c + 6 smooth, -near, smooth; entries beyond the ends
// of the line are zero.
static inline double penta_smooth(double c) { return PENTA_SMOOTHING * c; }
static inline double penta_near(double c) { return c + 4 * penta_smooth(c); }
static inline double penta_middle(double c) { return 1 + 2 * c + 6 * penta_smooth(c); }

// `lines` lines of n points, `step` apart along a line and `across` from line to line. Elimination
// without pivots: x[i] = u[i] - above1[i] x[i + 1] - above2[i] x[i + 2].
static inline void penta_solve(double *restrict u, const double *restrict c, int n, ptrdiff_t step,
                               int lines, ptrdiff_t across) {
    double above1[MAX_LINE + 2][LANES];
    double above2[MAX_LINE + 2][LANES];
    for (int k = 0; k < LANES; ++k) {
        above1[0][k] = above1[1][k] = above2[0][k] = above2[1][k] = 0;
    }
    for (int i = 0; i < n; ++i) {
        // Entries before the line's begin are multiplied by 0, and so must be finite.
        const ptrdiff_t one = i >= 1 ? -step : 0;
        const ptrdiff_t two = i >= 2 ? -2 * step : 0;
#pragma omp simd
        for (int k = 0; k < lines; ++k) {
            const ptrdiff_t at = i * step + k * across;
            const double smooth = penta_smooth(c[at]);
            const double near = -penta_near(c[at]);
            const double far = i >= 2 ? smooth : 0;
            const double left = (i >= 1 ? near : 0) - far * above1[i][k];
            const double middle =
                penta_middle(c[at]) - far * above2[i][k] - left * above1[i + 1][k];
            above1[i + 2][k] = (near - left * above2[i + 1][k]) / middle;
            above2[i + 2][k] = smooth / middle;
            u[at] = (u[at] - far * u[at + two] - left * u[at + one]) / middle;
        }
    }
    for (int i = n - 2; i >= 0; --i) {
        const ptrdiff_t two = i + 2 < n ? 2 * step : 0;
#pragma omp simd
        for (int k = 0; k < lines; ++k) {
            const ptrdiff_t at = i * step + k * across;
            const double far = i + 2 < n ? above2[i + 2][k] : 0;
            u[at] = u[at] - above1[i + 2][k] * u[at + step] - far * u[at + two];
        }
    }
}
#pragma omp end declare target

static int units(const dpu_options *o) { return o->fields; }

static void describe(const dpu_options *o, char *text, size_t text_size) {
    snprintf(text, text_size, "%d x %d^3, %d steps", o->fields, o->grid, o->steps);
}

static size_t field_of(const problem *p) {
    return (size_t)p->o.grid * (size_t)p->o.grid * (size_t)p->o.grid;
}

static void shape(problem *p) { p->count[0] = p->count[1] = (size_t)p->o.fields * field_of(p); }

static void fill(problem *p) {
#pragma omp parallel for
    for (size_t i = 0; i < p->count[0]; ++i) {
        p->array[0][i] = scatter(2 * i);
        p->array[1][i] = 0.25 + 0.125 * scatter(2 * i + 1);
    }
}

static int ranges(const problem *p, const part *own, array_range into[MAX_RANGES]) {
    const size_t at = (size_t)own->first * field_of(p);
    const size_t count = (size_t)(own->end - own->first) * field_of(p);
    into[0] = (array_range){p->array[0] + at, count, 1, p->array[0] + at, count};
    into[1] = (array_range){p->array[1] + at, count, 1, NULL, 0};
    return 2;
}

static void work(const problem *p, part *own) {
    const int n = p->o.grid;
    const int fields = own->end - own->first;
    const size_t field = field_of(p);
    const int device = own->device;
    double *const u = part_at(own, p->array[0] + (size_t)own->first * field);
    double *const c = part_at(own, p->array[1] + (size_t)own->first * field);
    // Strides for x, y and z: from point to point of a line, from line to line of a bundle, and to
    // the next bundles. Along x and y the lines of a bundle are adjacent in memory.
    const ptrdiff_t line = n;
    const ptrdiff_t plane = line * n;
    const ptrdiff_t steps[3] = {plane, line, 1};
    const ptrdiff_t across[3] = {1, 1, line};
    const ptrdiff_t next[3] = {line, plane, plane};
    for (int sweep = 0; sweep < 3 * p->o.steps; ++sweep) {
        const ptrdiff_t along = steps[sweep % 3];
        const ptrdiff_t lane_stride = across[sweep % 3];
        const ptrdiff_t outer = next[sweep % 3];
#pragma omp target parallel for collapse(3) device(device) is_device_ptr(u, c)
        for (int f = 0; f < fields; ++f) {
            for (int i = 0; i < n; ++i) {
                for (int j = 0; j < n; j += LANES) {
                    const ptrdiff_t at = (ptrdiff_t)field * f + outer * i + lane_stride * j;
                    penta_solve(u + at, c + at, n, along, n - j < LANES ? n - j : LANES,
                                lane_stride);
                }
            }
        }
    }
}

// to = the matrix of all lines with the given step, times from.
static void multiply(double *to, const double *from, const double *c, int n, ptrdiff_t step) {
    const ptrdiff_t field = (ptrdiff_t)n * n * n;
    for (ptrdiff_t at = 0; at < field; ++at) {
        const int i = (int)(at / step % n);
        double sum = penta_middle(c[at]) * from[at];
        for (int d = -2; d <= 2; ++d) {
            if (d != 0 && i + d >= 0 && i + d < n) {
                const int beside = d == -1 || d == 1;
                sum += (beside ? -penta_near(c[at]) : penta_smooth(c[at])) * from[at + d * step];
            }
        }
        to[at] = sum;
    }
}

// Recomputes one step of one field and multiplies its result back.
static int plausible(const problem *p, char *text, size_t text_size) {
    const int n = p->o.grid;
    problem one = *p;
    one.o.fields = one.o.steps = 1;
    const size_t count = one.count[0] = one.count[1] = field_of(p);
    one.array[0] = malloc(count * sizeof(double));
    one.array[1] = malloc(count * sizeof(double));
    double *const other = malloc(count * sizeof(double));
    double largest = INFINITY;
    if (one.array[0] != NULL && one.array[1] != NULL && other != NULL) {
        fill(&one);
        parts_run_on_host(&dpu_penta, &one);
        multiply(other, one.array[0], one.array[1], n, 1);
        multiply(one.array[0], other, one.array[1], n, n);
        multiply(other, one.array[0], one.array[1], n, (ptrdiff_t)n * n);
        largest = 0;
        for (size_t i = 0; i < count; ++i) {
            largest = fmax(largest, fabs(other[i] - scatter(2 * i)));
        }
    }
    free(one.array[0]);
    free(one.array[1]);
    free(other);
    snprintf(text, text_size, "one step multiplied back is %.1e from its begin", largest);
    return largest <= 1e-13;
}

const dpu_kernel dpu_penta = {"penta",   "penta-diagonal lines, 3 directions",
                              units,     describe,
                              shape,     fill,
                              ranges,    work,
                              plausible, 0};
