// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Heat in a cube whose faces stay at zero: explicit steps with the 7-point stencil. The grid is
// split into planes of x; it has a rim of zeros.
#include "dpu/parts.h"

#include <math.h>
#include <stdio.h>

static const double PI = 3.14159265358979323846;

#define HEAT_RATE 0.125 // dt / dx^2; stable up to 1/6

typedef struct mode {
    double amplitude;
    int waves[3];
} mode;
// Half waves along x, y, z; not symmetric.
static const mode modes[2] = {{1.0, {1, 2, 3}}, {0.5, {3, 1, 1}}};

#pragma omp declare target
static inline void heat_row(double *restrict to, const double *restrict from, int n, ptrdiff_t row,
                            ptrdiff_t plane) {
#pragma omp simd
    for (ptrdiff_t z = 0; z < n; ++z) {
        const double neighbours = (from[z - 1] + from[z + 1]) + (from[z - row] + from[z + row]) +
                                  (from[z - plane] + from[z + plane]);
        to[z] = from[z] + HEAT_RATE * (neighbours - 6 * from[z]);
    }
}
#pragma omp end declare target

static size_t row_of(const problem *p) { return (size_t)p->o.grid + 2; }

static size_t plane_of(const problem *p) { return row_of(p) * row_of(p); }

static int units(const dpu_options *o) { return o->grid; }

static void describe(const dpu_options *o, char *text, size_t text_size) {
    snprintf(text, text_size, "%d^3, %d steps", o->grid, o->steps);
}

static void shape(problem *p) {
    p->count[0] = p->count[1] = plane_of(p) * row_of(p);
    p->result = p->o.steps % 2;
}

// Returns the sum of the modes, each of which an exact step multiplies by its own factor.
static double exact(const problem *p, const double factor[2], int x, int y, int z) {
    const double h = PI / (p->o.grid + 1);
    double sum = 0;
    for (int m = 0; m < 2; ++m) {
        const int *k = modes[m].waves;
        sum += factor[m] * modes[m].amplitude * sin(k[0] * h * x) * sin(k[1] * h * y) *
               sin(k[2] * h * z);
    }
    return sum;
}

static void fill(problem *p) {
    const int n = p->o.grid;
    const double ones[2] = {1, 1};
#pragma omp parallel for
    for (int x = 1; x <= n; ++x) {
        for (int y = 1; y <= n; ++y) {
            double *row = p->array[0] + (size_t)x * plane_of(p) + (size_t)y * row_of(p);
            for (int z = 1; z <= n; ++z) {
                row[z] = exact(p, ones, x, y, z);
            }
        }
    }
}

static int ranges(const problem *p, const part *own, array_range into[MAX_RANGES]) {
    const size_t plane = plane_of(p);
    const size_t planes = (size_t)(own->end - own->first);
    for (int i = 0; i < 2; ++i) {
        // Own planes and the adjacent ones; the rim counts as plane 0.
        double *const begin = p->array[i] + (size_t)own->first * plane;
        const size_t back = i == p->result ? planes * plane : 0;
        into[i] = (array_range){begin, (planes + 2) * plane, i == 0, begin + plane, back};
    }
    return 2;
}

static void work(const problem *p, part *own) {
    const int n = p->o.grid;
    const size_t row = row_of(p);
    const size_t plane = plane_of(p);
    const int planes = own->end - own->first;
    const int device = own->device;
    double *const host[2] = {p->array[0] + (size_t)own->first * plane,
                             p->array[1] + (size_t)own->first * plane};
    double *from = part_at(own, host[0]);
    double *to = part_at(own, host[1]);
    // Includes the rim, but not the halos: a neighbour may have filled them in its first step.
    const size_t begin = own->index == 0 ? 0 : plane;
    const size_t end = (size_t)(planes + 1 + (own->index + 1 == own->count)) * plane;
#pragma omp target parallel for device(device) is_device_ptr(from, to)
    for (size_t i = begin; i < end; ++i) {
        to[i] = from[i];
    }
    for (int step = 1; step <= p->o.steps; ++step) {
#pragma omp target parallel for collapse(2) device(device) is_device_ptr(from, to)
        for (int x = 1; x <= planes; ++x) {
            for (int y = 1; y <= n; ++y) {
                const size_t at = (size_t)x * plane + (size_t)y * row + 1;
                heat_row(to + at, from + at, n, (ptrdiff_t)row, (ptrdiff_t)plane);
            }
        }
        double *const now = host[step % 2];
        part_exchange(own, now, now + plane, now + (size_t)planes * plane,
                      now + (size_t)(planes + 1) * plane, plane);
        double *const older = from;
        from = to;
        to = older;
    }
}

static int plausible(const problem *p, char *text, size_t text_size) {
    const int n = p->o.grid;
    const double h = PI / (n + 1);
    double factor[2];
    for (int m = 0; m < 2; ++m) {
        double sum = 0;
        for (int d = 0; d < 3; ++d) {
            sum += pow(sin(modes[m].waves[d] * h / 2), 2);
        }
        factor[m] = pow(1 - 4 * HEAT_RATE * sum, p->o.steps);
    }
    double largest = 0;
#pragma omp parallel for reduction(max : largest)
    for (int x = 1; x <= n; ++x) {
        for (int y = 1; y <= n; ++y) {
            const double *row =
                p->array[p->result] + (size_t)x * plane_of(p) + (size_t)y * row_of(p);
            for (int z = 1; z <= n; ++z) {
                largest = fmax(largest, fabs(row[z] - exact(p, factor, x, y, z)));
            }
        }
    }
    snprintf(text, text_size, "%.1e from the exact solution of the scheme", largest);
    return largest <= 1e-14 * (10 + p->o.steps);
}

const dpu_kernel dpu_heat = {
    "heat", "heat equation, 7-point stencil", units, describe, shape, fill, ranges, work, plausible,
    0};
