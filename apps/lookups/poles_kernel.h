// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lookups bound by computing, after the idea of RSBench (Tramm et al. 2014): cross sections are
// sums over the poles of the window that the energy's root lies in, broadened by temperature with
// the Faddeeva function w(z), and a smooth background.
#ifndef LOOKUPS_POLES_KERNEL_H
#define LOOKUPS_POLES_KERNEL_H

#include "lookups/tables.h"

#include <math.h>

#pragma omp declare target
enum {
    TERMS = 16,           // of the expansion of w
    PARTS = 4,            // channels that have residues; the last one is the rest of the first
    POLE = 2 + 2 * PARTS, // of a window: position, residues
    SMOOTH = 3 * PARTS    // and the background's coefficients
};

// values: TERMS coefficients, then of each nuclide its broadening and
// [window]{[pole][POLE], [SMOOTH]}.

typedef struct number2 {
    double re, im;
} number2;

static inline number2 times(number2 a, number2 b) {
    return (number2){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

static inline number2 over(number2 a, number2 b) {
    const double square = b.re * b.re + b.im * b.im;
    return (number2){(a.re * b.re + a.im * b.im) / square, (a.im * b.re - a.re * b.im) / square};
}

#define POLES_ROOT_PI 1.77245385090551602730

// Returns w(z) for Im z > 0. Near the origin Weideman's expansion (SIAM J. Numer. Anal. 31, 1994)
// in powers of (L + iz) / (L - iz); elsewhere w as an integral, by Gauss and Hermite's rule of
// three points.
static inline number2 poles_faddeeva(const double *coefficients, number2 z) {
    if (z.re * z.re + z.im * z.im >= 36) {
        const number2 square = times(z, z);
        const number2 near = over((number2){2.0 / 3, 0}, z);
        const number2 far =
            over((number2){z.re / 3, z.im / 3}, (number2){square.re - 1.5, square.im});
        return (number2){-(near.im + far.im) / POLES_ROOT_PI, (near.re + far.re) / POLES_ROOT_PI};
    }
    const double l = 3.36358566101485817; // sqrt(TERMS / sqrt(2))
    const number2 below = {l + z.im, -z.re};
    const number2 ratio = over((number2){l - z.im, z.re}, below);
    number2 sum = {0, 0};
    for (int k = TERMS - 1; k >= 0; --k) {
        sum = times(sum, ratio);
        sum.re += coefficients[k];
    }
    const number2 first = over((number2){2 * sum.re, 2 * sum.im}, times(below, below));
    const number2 second = over((number2){1 / POLES_ROOT_PI, 0}, below);
    return (number2){first.re + second.re, first.im + second.im};
}

static inline size_t poles_window_size(const tables *t) { return (size_t)t->poles * POLE + SMOOTH; }

static inline void poles_add(double sections[CHANNELS], const tables *t, const double *values,
                             size_t nuclide, double root, double weight) {
    const size_t size = poles_window_size(t);
    const double *const own = values + t->data + nuclide * (1 + (size_t)t->points * size);
    int window = (int)(root * t->points);
    window = window < t->points ? window : t->points - 1;
    const double *const poles = own + 1 + (size_t)window * size;
    const double *const smooth = poles + (size_t)t->poles * POLE;
    double sums[PARTS];
    for (int c = 0; c < PARTS; ++c) {
        sums[c] = smooth[3 * c] + root * (smooth[3 * c + 1] + root * smooth[3 * c + 2]);
    }
    for (int p = 0; p < t->poles; ++p) {
        const double *const pole = poles + (size_t)p * POLE;
        const number2 z = {(root - pole[0]) * own[0], -pole[1] * own[0]};
        const number2 w = poles_faddeeva(values, z);
        for (int c = 0; c < PARTS; ++c) {
            sums[c] += pole[2 + 2 * c] * w.re - pole[3 + 2 * c] * w.im;
        }
    }
    for (int c = 0; c < PARTS; ++c) {
        sections[c] += weight * sums[c];
    }
    sections[PARTS] += weight * (sums[0] - sums[1]);
}

static inline uint64_t poles_lookup(const tables *t, const double *values, const int *indices,
                                    uint64_t number) {
    const event e = event_make(number);
    const double root = sqrt(e.energy);
    double sections[CHANNELS] = {0};
    const int end = indices[t->starts + (size_t)e.material + 1];
    for (int i = indices[t->starts + (size_t)e.material]; i < end; ++i) {
        const size_t nuclide = (size_t)indices[t->entries + (size_t)i];
        poles_add(sections, t, values, nuclide, root, values[t->fractions + (size_t)i]);
    }
    return event_score(sections, number);
}
#pragma omp end declare target

#endif
