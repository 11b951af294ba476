// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One form of each loop for processors and GPUs: chunks of rows or of vectors, distributed over all
// threads of the device. Only the length of a chunk differs: on a processor (host devices) long
// enough for vector instructions, on a GPU a single point, so that neighbouring threads read
// neighbouring addresses.
#include "cg/cg_compute.h"

#include "common/comm.h"
#include "common/device.h"
#include "common/scatter.h"

enum { CHUNK = 1024 };

// Mapped, not declared for the device, so that they are in memory that other ranks can access.
double cg_curvature;
double cg_residual;
static double last_residual; // cg_residual of the step before

static size_t chunk;

static inline size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

// The known solution: numbers from -1 to 1 without a pattern, so that no symmetry hides an error.
static inline double solution(const slab *s, int x, int y, int z) {
    if (x < 0 || y < 0 || z < 0 || x >= s->nx || y >= s->ny || z >= s->nz) {
        return 0;
    }
    return scatter(((uint64_t)x * (uint64_t)s->ny + (uint64_t)y) * (uint64_t)s->nz + (uint64_t)z);
}

static inline double right_hand_side(const slab *s, int x, int y, int z) {
    const double neighbours = solution(s, x - 1, y, z) + solution(s, x + 1, y, z) +
                              solution(s, x, y - 1, z) + solution(s, x, y + 1, z) +
                              solution(s, x, y, z - 1) + solution(s, x, y, z + 1);
    return 6 * solution(s, x, y, z) - neighbours;
}

void cg_enter(const slab *s, cg_vectors *v, int single_reduction) {
    const size_t count = s->count;
    double **const all[] = {&v->p, &v->r, &v->q, &v->x, &v->s};
    v->s = NULL;
    for (int i = 0; i < (single_reduction ? 5 : 4); ++i) {
        double *const vector = comm_alloc(count * sizeof(double));
        *all[i] = vector;
#pragma omp target enter data map(alloc : vector[0 : count])
    }
#pragma omp target enter data map(alloc : cg_curvature, cg_residual, last_residual)
    chunk = device_is_gpu() ? 1 : CHUNK;
}

void cg_leave(const slab *s, cg_vectors *v) {
    const size_t count = s->count;
#pragma omp target exit data map(release : cg_curvature, cg_residual, last_residual)
    double **const all[] = {&v->p, &v->r, &v->q, &v->x, &v->s};
    for (int i = v->s != NULL ? 4 : 3; i >= 0; --i) {
        double *const vector = *all[i];
#pragma omp target exit data map(release : vector[0 : count])
        comm_free(vector);
    }
}

void cg_begin(const slab *s, const cg_vectors *v) {
    const slab own_slab = *s;
    const size_t count = s->count;
    double *const p = v->p;
    double *const r = v->r;
    double *const q = v->q;
    double *const x = v->x;
#pragma omp target teams distribute parallel for
    for (size_t i = 0; i < count; ++i) {
        p[i] = r[i] = q[i] = x[i] = 0;
    }
    if (v->s != NULL) {
        double *const direction_applied = v->s;
#pragma omp target teams distribute parallel for
        for (size_t i = 0; i < count; ++i) {
            direction_applied[i] = 0;
        }
    }
#pragma omp target map(tofrom : cg_residual, last_residual)
    cg_residual = last_residual = 0;
#pragma omp target teams distribute parallel for collapse(3) map(to : own_slab)                    \
    map(tofrom : cg_residual) reduction(+ : cg_residual)
    for (int i = 0; i < own_slab.planes; ++i) {
        for (int j = 0; j < own_slab.ny; ++j) {
            for (int k = 0; k < own_slab.nz; ++k) {
                const double b = right_hand_side(&own_slab, own_slab.first + i, j, k);
                const size_t index =
                    (size_t)(i + 1) * own_slab.plane + (size_t)(j + 1) * own_slab.pitch + 1;
                p[index + (size_t)k] = r[index + (size_t)k] = b;
                cg_residual += b * b;
            }
        }
    }
}

// Computes q = A p for `n` points of a row; returns their p . q.
static inline double apply_row(double *restrict q, const double *restrict p, size_t n,
                               ptrdiff_t row, ptrdiff_t plane) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (ptrdiff_t z = 0; z < (ptrdiff_t)n; ++z) {
        const double neighbours =
            (p[z - 1] + p[z + 1]) + (p[z - row] + p[z + row]) + (p[z - plane] + p[z + plane]);
        q[z] = 6 * p[z] - neighbours;
        sum += p[z] * q[z];
    }
    return sum;
}

static inline double square_row(const double *r, size_t n) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (size_t z = 0; z < n; ++z) {
        sum += r[z] * r[z];
    }
    return sum;
}

void cg_apply(const slab *s, const cg_vectors *v) {
    const int planes = s->planes;
    const int ny = s->ny;
    const size_t nz = (size_t)s->nz;
    const size_t pitch = s->pitch;
    const size_t plane = s->plane;
    const size_t points = chunk;
    double *const q = v->q;
    const double *const p = v->p;
#pragma omp target map(tofrom : cg_curvature, cg_residual, last_residual)
    {
        last_residual = cg_residual;
        cg_residual = 0;
        cg_curvature = 0;
    }
#pragma omp target teams distribute parallel for collapse(3) map(tofrom : cg_curvature)            \
    reduction(+ : cg_curvature)
    for (int i = 0; i < planes; ++i) {
        for (int j = 0; j < ny; ++j) {
            for (size_t k = 0; k < nz; k += points) {
                const size_t index = (size_t)(i + 1) * plane + (size_t)(j + 1) * pitch + 1 + k;
                cg_curvature += apply_row(q + index, p + index, smaller(points, nz - k),
                                          (ptrdiff_t)pitch, (ptrdiff_t)plane);
            }
        }
    }
}

static inline double step_chunk(double *restrict x, double *restrict r, const double *restrict p,
                                const double *restrict q, double length, size_t n) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (size_t i = 0; i < n; ++i) {
        x[i] += length * p[i];
        r[i] -= length * q[i];
        sum += r[i] * r[i];
    }
    return sum;
}

// Rims stay zero in all vectors, so own planes are processed as one contiguous range of memory.
void cg_step(const slab *s, const cg_vectors *v) {
    const size_t points = chunk;
    const size_t first = s->plane;
    const size_t last = first + (size_t)s->planes * s->plane;
    const double *const p = v->p;
    const double *const q = v->q;
    double *const r = v->r;
    double *const x = v->x;
#pragma omp target teams distribute parallel for map(tofrom : cg_residual)                         \
    map(to : cg_curvature, last_residual) reduction(+ : cg_residual)
    for (size_t i = first; i < last; i += points) {
        cg_residual += step_chunk(x + i, r + i, p + i, q + i, last_residual / cg_curvature,
                                  smaller(points, last - i));
    }
}

static inline void turn_chunk(double *restrict p, const double *restrict r, double keep, size_t n) {
#pragma omp simd
    for (size_t i = 0; i < n; ++i) {
        p[i] = r[i] + keep * p[i];
    }
}

void cg_next_direction(const slab *s, const cg_vectors *v) {
    const size_t points = chunk;
    const size_t first = s->plane;
    const size_t last = first + (size_t)s->planes * s->plane;
    double *const p = v->p;
    const double *const r = v->r;
#pragma omp target teams distribute parallel for map(to : cg_residual, last_residual)
    for (size_t i = first; i < last; i += points) {
        turn_chunk(p + i, r + i, cg_residual / last_residual, smaller(points, last - i));
    }
}

static inline void advance_chunk(double *restrict p, double *restrict s, double *restrict x,
                                 double *restrict r, const double *restrict q, double keep,
                                 double length, size_t n) {
#pragma omp simd
    for (size_t i = 0; i < n; ++i) {
        p[i] = r[i] + keep * p[i];
        s[i] = q[i] + keep * s[i];
        x[i] += length * p[i];
        r[i] -= length * s[i];
    }
}

void cg_advance(const slab *s, const cg_vectors *v, double keep, double length) {
    const size_t points = chunk;
    const size_t first = s->plane;
    const size_t last = first + (size_t)s->planes * s->plane;
    double *const p = v->p;
    double *const applied = v->s;
    double *const x = v->x;
    double *const r = v->r;
    const double *const q = v->q;
#pragma omp target teams distribute parallel for map(tofrom : cg_curvature, cg_residual)
    for (size_t i = first; i < last; i += points) {
        if (i == first) {
            cg_curvature = cg_residual = 0; // instead of a region that only does this
        }
        advance_chunk(p + i, applied + i, x + i, r + i, q + i, keep, length,
                      smaller(points, last - i));
    }
}

void cg_apply_residual(const slab *s, const cg_vectors *v) {
    const int planes = s->planes;
    const int ny = s->ny;
    const size_t nz = (size_t)s->nz;
    const size_t pitch = s->pitch;
    const size_t plane = s->plane;
    const size_t points = chunk;
    double *const q = v->q;
    const double *const r = v->r;
#pragma omp target teams distribute parallel for collapse(3)                                       \
    map(tofrom : cg_curvature, cg_residual) reduction(+ : cg_curvature, cg_residual)
    for (int i = 0; i < planes; ++i) {
        for (int j = 0; j < ny; ++j) {
            for (size_t k = 0; k < nz; k += points) {
                const size_t index = (size_t)(i + 1) * plane + (size_t)(j + 1) * pitch + 1 + k;
                const size_t n = smaller(points, nz - k);
                cg_curvature +=
                    apply_row(q + index, r + index, n, (ptrdiff_t)pitch, (ptrdiff_t)plane);
                cg_residual += square_row(r + index, n);
            }
        }
    }
}

void cg_read_sums(double sums[2]) {
#pragma omp target update from(cg_residual, cg_curvature)
    sums[0] = cg_residual;
    sums[1] = cg_curvature;
}

// Own planes only: a neighbour may have written the others already.
void cg_take_solution(const slab *s, const cg_vectors *v) {
    const size_t first = s->plane;
    const size_t last = first + (size_t)s->planes * s->plane;
    double *const p = v->p;
    const double *const x = v->x;
#pragma omp target teams distribute parallel for
    for (size_t i = first; i < last; ++i) {
        p[i] = x[i];
    }
}

void cg_compare(const slab *s, const cg_vectors *v) {
    const slab own_slab = *s;
    const double *const q = v->q;
    const double *const x = v->x;
#pragma omp target map(tofrom : cg_curvature, cg_residual)
    cg_curvature = cg_residual = 0;
#pragma omp target teams distribute parallel for collapse(3) map(to : own_slab)                    \
    map(tofrom : cg_curvature, cg_residual) reduction(+ : cg_curvature, cg_residual)
    for (int i = 0; i < own_slab.planes; ++i) {
        for (int j = 0; j < own_slab.ny; ++j) {
            for (int k = 0; k < own_slab.nz; ++k) {
                const size_t index = (size_t)(i + 1) * own_slab.plane +
                                     (size_t)(j + 1) * own_slab.pitch + 1 + (size_t)k;
                const double left = right_hand_side(&own_slab, own_slab.first + i, j, k) - q[index];
                const double error = x[index] - solution(&own_slab, own_slab.first + i, j, k);
                cg_residual += left * left;
                cg_curvature += error * error;
            }
        }
    }
}

void cg_measure(const slab *s, const cg_vectors *v) {
    const size_t first = s->plane;
    const size_t last = first + (size_t)s->planes * s->plane;
    const double *const x = v->x;
#pragma omp target map(tofrom : cg_residual)
    cg_residual = 0;
#pragma omp target teams distribute parallel for map(tofrom : cg_residual)                         \
    reduction(+ : cg_residual)
    for (size_t i = first; i < last; ++i) {
        cg_residual += x[i] * x[i];
    }
}
