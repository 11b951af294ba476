// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// MRI Q: for each voxel the sum, over samples of k space, of the sample's weight times cosine and
// sine of its phase there (Stone et al. 2008). Rows of voxels are distributed; samples go to all.
#include "common/scatter.h"
#include "dpu/parts.h"

#include <math.h>
#include <stdio.h>

static const double PI = 3.14159265358979323846;

enum { CHUNK = 64, SAMPLE = 4 }; // voxels at a time; doubles of a sample: kx, ky, kz, weight

#pragma omp declare target
// Adds cos and sin of the given number of turns. All devices execute the same operations, so that
// bits agree, in vector instructions. Half turns are removed; then Taylor's series at up to a
// quarter turn is exact to 3e-16.
static inline void mriq_phase(double turns, double weight, double *re, double *im) {
    const double halves = __builtin_rint(2 * turns);
    const double x = (turns - 0.5 * halves) * 6.28318530717958647692;
    const double odd = halves - 2 * __builtin_rint(0.5 * halves); // -1, 0 or 1
    const double signed_weight = weight * (1 - 2 * odd * odd);
    const double s = x * x;
    double cosine = 1;
    double sine = 1;
    for (int k = 10; k >= 1; --k) {
        cosine = 1 - cosine * s * (1.0 / ((2 * k - 1) * (2 * k)));
        sine = 1 - sine * s * (1.0 / ((2 * k) * (2 * k + 1)));
    }
    *re += signed_weight * cosine;
    *im += signed_weight * (sine * x);
}

// `n` voxels; coordinates and results are arrays of `pitch` for each component.
static inline void mriq_chunk(double *restrict q, const double *restrict position, size_t pitch,
                              int n, const double *restrict sample, int samples) {
    double re[CHUNK];
    double im[CHUNK];
    for (int i = 0; i < n; ++i) {
        re[i] = im[i] = 0;
    }
    for (int s = 0; s < samples; ++s) {
        const double *const k = sample + (size_t)s * SAMPLE;
#pragma omp simd
        for (int i = 0; i < n; ++i) {
            const double turns = k[0] * position[i] + k[1] * position[pitch + (size_t)i] +
                                 k[2] * position[2 * pitch + (size_t)i];
            mriq_phase(turns, k[3], &re[i], &im[i]);
        }
    }
    for (int i = 0; i < n; ++i) {
        q[i] = re[i];
        q[pitch + (size_t)i] = im[i];
    }
}
#pragma omp end declare target

// A unit is a row of voxels.
static int units(const dpu_options *o) { return o->grid * o->grid; }

static void describe(const dpu_options *o, char *text, size_t text_size) {
    snprintf(text, text_size, "%d^3 voxels, %d samples", o->grid, o->samples);
}

static void shape(problem *p) {
    const size_t n = (size_t)p->o.grid;
    p->count[0] = 2 * n * n * n;
    p->count[1] = 3 * n * n * n;
    p->count[2] = SAMPLE * (size_t)p->o.samples;
}

// Voxels in the unit cube, not quite on a grid; samples up to half of the grid's frequency.
static void fill(problem *p) {
    const size_t n = (size_t)p->o.grid;
#pragma omp parallel for
    for (size_t row = 0; row < n * n; ++row) {
        double *const position = p->array[1] + row * 3 * n;
        for (size_t z = 0; z < n; ++z) {
            const size_t grid[3] = {row / n, row % n, z};
            for (size_t d = 0; d < 3; ++d) {
                const double jitter = 0.1 * scatter((row * n + z) * 3 + d);
                position[d * n + z] = ((double)grid[d] + jitter) / (double)n;
            }
        }
    }
    for (size_t i = 0; i < p->count[2]; ++i) {
        const double number = scatter(i + ((uint64_t)1 << 40));
        p->array[2][i] = i % SAMPLE < 3 ? 0.5 * (double)n * number : number * number;
    }
}

static int ranges(const problem *p, const part *own, array_range into[MAX_RANGES]) {
    const size_t n = (size_t)p->o.grid;
    const size_t first = (size_t)own->first;
    const size_t rows = (size_t)(own->end - own->first);
    double *const q = p->array[0] + first * 2 * n;
    into[0] = (array_range){q, rows * 2 * n, 0, q, rows * 2 * n};
    into[1] = (array_range){p->array[1] + first * 3 * n, rows * 3 * n, 1, NULL, 0};
    into[2] = (array_range){p->array[2], p->count[2], 1, NULL, 0};
    return 3;
}

static void work(const problem *p, part *own) {
    const int n = p->o.grid;
    const size_t pitch = (size_t)n;
    const int rows = own->end - own->first;
    const int samples = p->o.samples;
    const int device = own->device;
    double *const q = part_at(own, p->array[0] + (size_t)own->first * 2 * pitch);
    double *const position = part_at(own, p->array[1] + (size_t)own->first * 3 * pitch);
    double *const sample = part_at(own, p->array[2]);
#pragma omp target parallel for collapse(2) device(device) is_device_ptr(q, position, sample)
    for (int row = 0; row < rows; ++row) {
        for (int z = 0; z < n; z += CHUNK) {
            mriq_chunk(q + (size_t)row * 2 * pitch + z, position + (size_t)row * 3 * pitch + z,
                       pitch, n - z < CHUNK ? n - z : CHUNK, sample, samples);
        }
    }
}

// Recomputes some voxels with the library's functions.
static int plausible(const problem *p, char *text, size_t text_size) {
    const size_t n = (size_t)p->o.grid;
    double largest = 0;
    double weights = 0;
    for (size_t i = 0; i < 16; ++i) {
        const size_t row = i * (n * n - 1) / 15;
        const size_t z = i * (n - 1) / 15;
        const double *const position = p->array[1] + row * 3 * n + z;
        double re = 0;
        double im = 0;
        weights = 0;
        for (int s = 0; s < p->o.samples; ++s) {
            const double *const k = p->array[2] + (size_t)s * SAMPLE;
            const double phase =
                2 * PI * fmod(k[0] * position[0] + k[1] * position[n] + k[2] * position[2 * n], 1);
            re += k[3] * cos(phase);
            im += k[3] * sin(phase);
            weights += k[3];
        }
        const double *const q = p->array[0] + row * 2 * n + z;
        largest = fmax(largest, fmax(fabs(q[0] - re), fabs(q[n] - im)));
    }
    snprintf(text, text_size, "%.1e from the library's cosine and sine, of %.1e", largest, weights);
    return largest <= 1e-12 * weights;
}

const dpu_kernel dpu_mriq = {
    "mriq", "MRI Q, sums of phases", units, describe, shape, fill, ranges, work, plausible, 0};
