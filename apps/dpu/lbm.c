// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lattice Boltzmann, D3Q19 with a single relaxation time (Qian et al. 1992), in a box whose lid
// slides along x: walls reflect halfway (bounce-back). The grid is split into planes of x.
//
// A plane is 19 arrays [y][z], one per direction, in an order in which the directions towards
// larger x are contiguous in memory, and those towards smaller x too: neighbours need these ranges.
#include "dpu/parts.h"

#include <math.h>
#include <stdio.h>

enum { Q = 19, FORWARD = 9, BACKWARD = 14, CROSSING = 5, LANES = 32 };

#define LBM_LID 0.05   // speed of the lid
#define LBM_RELAX 1.25 // inverse relaxation time

#pragma omp declare target
static const int cx[Q] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1};
static const int cy[Q] = {0, 1, -1, 0, 0, 1, -1, 1, -1, 0, 1, -1, 0, 0, 0, -1, 1, 0, 0};
static const int cz[Q] = {0, 0, 0, 1, -1, 1, -1, -1, 1, 0, 0, 0, 1, -1, 0, 0, 0, -1, 1};
static const int reverse[Q] = {0, 2, 1, 4, 3, 6, 5, 8, 7, 14, 15, 16, 17, 18, 9, 10, 11, 12, 13};

typedef struct lattice {
    int n;                    // points along each direction
    int first;                // x of the plane at index 1; plane 0 is a halo
    size_t row, slice, plane; // doubles from y to y + 1, direction to direction, x to x + 1
} lattice;

static inline double lbm_weight(int q) {
    const int links = cx[q] * cx[q] + cy[q] * cy[q] + cz[q] * cz[q];
    return links == 0 ? 1.0 / 3 : links == 1 ? 1.0 / 18 : 1.0 / 36;
}

// Computes the values that stream into `n` points from (y, z) on of plane `at`, for direction q.
// Values from outside a wall are reflected from the point itself, with the momentum of the lid.
static inline void lbm_stream(double *restrict f, const lattice *l, const double *restrict from,
                              int q, int at, int y, int z, int n) {
    const int sx = l->first + at - 1 - cx[q];
    const int sy = y - cy[q];
    const double *const plane = from + (size_t)at * l->plane;
    const double *const own = plane + (size_t)reverse[q] * l->slice + (size_t)y * l->row + z;
    if (sx < 0 || sx >= l->n || sy < 0 || sy >= l->n) {
        const double push = sy >= l->n ? 6 * LBM_LID * lbm_weight(q) * cx[q] : 0;
        for (int k = 0; k < n; ++k) {
            f[k] = own[k] + push;
        }
        return;
    }
    const double *const source = plane - cx[q] * (ptrdiff_t)l->plane + (size_t)q * l->slice +
                                 (size_t)sy * l->row + z - cz[q];
    for (int k = 0; k < n; ++k) {
        f[k] = source[k];
    }
    if (cz[q] > 0 && z == 0) {
        f[0] = own[0];
    }
    if (cz[q] < 0 && z + n == l->n) {
        f[n - 1] = own[n - 1];
    }
}

// Up to LANES points of a row: moments, and relaxation towards equilibrium.
static inline void lbm_points(const lattice *l, double *restrict to, const double *restrict from,
                              int at, int y, int z, int n) {
    double f[Q][LANES];
    double density[LANES] = {0};
    double u[3][LANES] = {{0}, {0}, {0}};
    for (int q = 0; q < Q; ++q) {
        lbm_stream(f[q], l, from, q, at, y, z, n);
        for (int k = 0; k < n; ++k) {
            density[k] += f[q][k];
            u[0][k] += cx[q] * f[q][k];
            u[1][k] += cy[q] * f[q][k];
            u[2][k] += cz[q] * f[q][k];
        }
    }
    double still[LANES];
    for (int k = 0; k < n; ++k) {
        u[0][k] /= density[k];
        u[1][k] /= density[k];
        u[2][k] /= density[k];
        still[k] = 1 - 1.5 * (u[0][k] * u[0][k] + u[1][k] * u[1][k] + u[2][k] * u[2][k]);
    }
    double *point = to + (size_t)at * l->plane + (size_t)y * l->row + z;
    for (int q = 0; q < Q; ++q, point += l->slice) {
        const double weight = lbm_weight(q);
        for (int k = 0; k < n; ++k) {
            const double along = cx[q] * u[0][k] + cy[q] * u[1][k] + cz[q] * u[2][k];
            const double equal = weight * density[k] * (still[k] + 3 * along + 4.5 * along * along);
            point[k] = f[q][k] + LBM_RELAX * (equal - f[q][k]);
        }
    }
}

static inline void lbm_row(const lattice *l, double *restrict to, const double *restrict from,
                           int at, int y) {
    for (int z = 0; z < l->n; z += LANES) {
        lbm_points(l, to, from, at, y, z, l->n - z < LANES ? l->n - z : LANES);
    }
}
#pragma omp end declare target

static int units(const dpu_options *o) { return o->grid; }

static void describe(const dpu_options *o, char *text, size_t text_size) {
    snprintf(text, text_size, "%d^3, %d steps", o->grid, o->steps);
}

static size_t slice_of(const problem *p) { return (size_t)p->o.grid * (size_t)p->o.grid; }

static void shape(problem *p) {
    p->count[0] = p->count[1] = ((size_t)p->o.grid + 2) * Q * slice_of(p);
    p->result = p->o.steps % 2;
}

// Fluid at rest, of density 1.
static void fill(problem *p) {
    const size_t slice = slice_of(p);
    for (int x = 1; x <= p->o.grid; ++x) {
        for (int q = 0; q < Q; ++q) {
            double *const f = p->array[0] + ((size_t)x * Q + (size_t)q) * slice;
            for (size_t i = 0; i < slice; ++i) {
                f[i] = lbm_weight(q);
            }
        }
    }
}

static int ranges(const problem *p, const part *own, array_range into[MAX_RANGES]) {
    const size_t plane = Q * slice_of(p);
    const size_t planes = (size_t)(own->end - own->first);
    for (int i = 0; i < 2; ++i) {
        double *const begin = p->array[i] + (size_t)own->first * plane;
        const size_t back = i == p->result ? planes * plane : 0;
        into[i] = (array_range){begin, (planes + 2) * plane, i == 0, begin + plane, back};
    }
    return 2;
}

static void work(const problem *p, part *own) {
    const int n = p->o.grid;
    const size_t slice = slice_of(p);
    const size_t plane = Q * slice;
    const int planes = own->end - own->first;
    const int device = own->device;
    const lattice l = {n, own->first, (size_t)n, slice, plane};
    double *const host[2] = {p->array[0] + (size_t)own->first * plane,
                             p->array[1] + (size_t)own->first * plane};
    double *from = part_at(own, host[0]);
    double *to = part_at(own, host[1]);
    for (int step = 1; step <= p->o.steps; ++step) {
#pragma omp target parallel for collapse(2) device(device) is_device_ptr(from, to) map(to : l)
        for (int x = 1; x <= planes; ++x) {
            for (int y = 0; y < n; ++y) {
                lbm_row(&l, to, from, x, y);
            }
        }
        double *const now = host[step % 2];
        double *const last = now + (size_t)planes * plane;
        part_exchange(own, now + FORWARD * slice, now + plane + BACKWARD * slice,
                      last + FORWARD * slice, last + plane + BACKWARD * slice, CROSSING * slice);
        double *const older = from;
        from = to;
        to = older;
    }
}

// Walls let no mass pass, and the fluid below the lid follows it.
static int plausible(const problem *p, char *text, size_t text_size) {
    const size_t n = (size_t)p->o.grid;
    const size_t slice = slice_of(p);
    double gain = 0;
    double flow = 0;
    for (size_t x = 1; x <= n; ++x) {
        for (size_t q = 0; q < Q; ++q) {
            const double *f = p->array[p->result] + (x * Q + q) * slice;
            for (size_t i = 0; i < slice; ++i) {
                gain +=
                    f[i] -
                    lbm_weight((int)q); // the sum of all values would have large rounding errors
                flow += i / n == n - 1 ? cx[q] * f[i] : 0;
            }
        }
    }
    gain /= (double)(n * slice);
    const double speed = flow / (double)slice;
    snprintf(text, text_size, "mass grew by %.1e, speed below the lid %.4f", gain, speed);
    return fabs(gain) <= 1e-13 * (10 + p->o.steps) && speed > 0 && speed < LBM_LID;
}

const dpu_kernel dpu_lbm = {
    "lbm", "lattice Boltzmann, D3Q19", units, describe, shape, fill, ranges, work, plausible, 0};
