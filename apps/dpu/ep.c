// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Embarrassingly parallel: pairs of Gaussian deviates by Marsaglia's polar method, counted by
// square annuli, as NAS EP specifies it (Bailey et al., The NAS Parallel Benchmarks, 1994). The
// uniform numbers are those of the specification, x' = 5^13 x mod 2^46 from 271828183, so the sums
// can be compared with published ones.
#include "dpu/parts.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>

enum { BATCH_BITS = 12, ANNULI = 10, RESULTS = 2 + ANNULI }; // of a batch: sums of x and y, counts

#pragma omp declare target
#define EP_FACTOR UINT64_C(1220703125)
#define EP_SEED UINT64_C(271828183)
#define EP_MASK ((UINT64_C(1) << 46) - 1)

// Returns the number after `steps` more steps. Products wrap at 2^64, a multiple of the modulus.
static inline uint64_t ep_jump(uint64_t x, uint64_t steps) {
    for (uint64_t factor = EP_FACTOR; steps > 0; steps >>= 1) {
        if (steps & 1) {
            x *= factor;
        }
        factor *= factor;
    }
    return x & EP_MASK;
}

static inline double ep_next(uint64_t *x) {
    *x = *x * EP_FACTOR & EP_MASK;
    return 2 * ((double)*x * 0x1p-46) - 1;
}

static inline void ep_batch(double *result, uint64_t batch) {
    double sum_x = 0;
    double sum_y = 0;
    int counts[ANNULI] = {0};
    uint64_t state = ep_jump(EP_SEED, batch << (BATCH_BITS + 1));
    for (int i = 0; i < 1 << BATCH_BITS; ++i) {
        const double u = ep_next(&state);
        const double v = ep_next(&state);
        const double square = u * u + v * v;
        if (square > 1) {
            continue;
        }
        const double length = sqrt(-2 * log(square) / square);
        const double x = u * length;
        const double y = v * length;
        sum_x += x;
        sum_y += y;
        ++counts[(int)fmax(fabs(x), fabs(y))];
    }
    result[0] = sum_x;
    result[1] = sum_y;
    for (int i = 0; i < ANNULI; ++i) {
        result[2 + i] = counts[i];
    }
}
#pragma omp end declare target

static int units(const dpu_options *o) { return 1 << (o->exponent - BATCH_BITS); }

static void describe(const dpu_options *o, char *text, size_t text_size) {
    snprintf(text, text_size, "2^%d pairs", o->exponent);
}

static void shape(problem *p) { p->count[0] = (size_t)units(&p->o) * RESULTS; }

static void fill(problem *p) { (void)p; }

static int ranges(const problem *p, const part *own, array_range into[MAX_RANGES]) {
    double *const begin = p->array[0] + (size_t)own->first * RESULTS;
    const size_t count = (size_t)(own->end - own->first) * RESULTS;
    into[0] = (array_range){begin, count, 0, begin, count};
    return 1;
}

static void work(const problem *p, part *own) {
    const int first = own->first;
    const int end = own->end;
    double *const results = part_at(own, p->array[0] + (size_t)first * RESULTS);
#pragma omp target parallel for device(own->device) is_device_ptr(results)
    for (int batch = first; batch < end; ++batch) {
        ep_batch(results + (size_t)(batch - first) * RESULTS, (uint64_t)batch);
    }
}

// Published sums of x and y for sizes of the benchmark's classes.
static const struct {
    int exponent;
    double x, y;
} published[] = {{24, -3.247834652034740e3, -6.958407078382297e3},
                 {25, -2.863319731645753e3, -6.320053679109499e3},
                 {28, -4.295875165629892e3, -1.580732573678431e4},
                 {30, 4.033815542441498e4, -2.660669192809235e4}};

static int plausible(const problem *p, char *text, size_t text_size) {
    double sums[RESULTS] = {0};
    double accepted = 0;
    for (size_t i = 0; i < p->count[0]; ++i) {
        sums[i % RESULTS] += p->array[0][i];
        accepted += i % RESULTS >= 2 ? p->array[0][i] : 0;
    }
    for (size_t i = 0; i < sizeof published / sizeof published[0]; ++i) {
        if (published[i].exponent == p->o.exponent) {
            const double apart =
                fmax(fabs(sums[0] / published[i].x - 1), fabs(sums[1] / published[i].y - 1));
            snprintf(text, text_size, "%.1e from the published sums", apart);
            return apart <= 1e-8;
        }
    }
    // pi / 4 of the square lies in the circle; 6 standard deviations.
    const double pairs = ldexp(1, p->o.exponent);
    const double expected = atan(1);
    const double apart = fabs(accepted / pairs - expected);
    snprintf(text, text_size, "%.6f of the pairs accepted, expected %.6f", accepted / pairs,
             expected);
    return apart <= 6 * sqrt(expected * (1 - expected) / pairs);
}

// The logarithm is that of the device's library.
const dpu_kernel dpu_ep = {
    "ep", "Gaussian pairs, no communication", units, describe, shape, fill, ranges, work, plausible,
    1e-12};
