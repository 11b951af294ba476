// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lookups/poles_kernel.h"

#include <stdio.h>
#include <stdlib.h>

static const double PI = 3.14159265358979323846;

// Computes the coefficients of Weideman's expansion: Fourier coefficients of (L^2 + t^2) exp(-t^2)
// in the angle of t = L tan(angle / 2).
static void fill_coefficients(double *coefficients) {
    const double l = sqrt((double)TERMS / sqrt(2));
    const int m = 2 * TERMS;
    for (int n = 0; n < TERMS; ++n) {
        double sum = 0;
        for (int k = -m + 1; k < m; ++k) {
            const double angle = k * PI / m;
            const double t = l * tan(angle / 2);
            sum += exp(-t * t) * (l * l + t * t) * cos((n + 1) * angle);
        }
        coefficients[n] = sum / (2 * m);
    }
}

static void fill_nuclide(tables *t, size_t nuclide) {
    const size_t size = poles_window_size(t);
    double *next = t->values + t->data + nuclide * (1 + (size_t)t->points * size);
    uint64_t number = ((uint64_t)3 << 40) + (nuclide << 24);
    *next++ = t->points * (5 + 10 * fraction(number++)); // covers both approximations of w
    for (int window = 0; window < t->points; ++window) {
        for (int p = 0; p < t->poles; ++p) {
            *next++ = (window + fraction(number++)) / t->points;
            *next++ = -(0.05 + 0.2 * fraction(number++)) / t->points;
            for (int c = 0; c < 2 * PARTS; ++c) {
                *next++ = scatter(number++);
            }
        }
        for (int c = 0; c < SMOOTH; ++c) {
            *next++ = fraction(number++);
        }
    }
}

static int make(tables *t, int nuclides, int points, int poles) {
    *t = (tables){.nuclides = nuclides, .points = points, .poles = poles};
    const size_t entries = materials_entries(nuclides);
    t->data = TERMS;
    t->fractions = t->data + (size_t)nuclides * (1 + (size_t)points * poles_window_size(t));
    t->num_values = t->fractions + entries;
    t->entries = MATERIALS + 1;
    t->num_indices = t->entries + entries;
    t->values = malloc(t->num_values * sizeof *t->values);
    t->indices = malloc(t->num_indices * sizeof *t->indices);
    if (t->values == NULL || t->indices == NULL) {
        return -1;
    }
    fill_coefficients(t->values);
    for (size_t nuclide = 0; nuclide < (size_t)nuclides; ++nuclide) {
        fill_nuclide(t, nuclide);
    }
    materials_fill(t);
    return 0;
}

static double apart(number2 a, number2 b) {
    return hypot(a.re - b.re, a.im - b.im) / hypot(b.re, b.im);
}

// Returns w(z) by the power series in iz, whose terms have the factors 1 / Gamma(n / 2 + 1).
static number2 series(number2 z) {
    const number2 turned = {-z.im, z.re};
    number2 power = {1, 0};
    number2 sum = {0, 0};
    for (int n = 0; n < 120; ++n) {
        const double factor = 1 / tgamma(n / 2.0 + 1);
        sum.re += factor * power.re;
        sum.im += factor * power.im;
        power = times(power, turned);
    }
    return sum;
}

// Compares w with its power series near the origin, and with the error function on the imaginary
// axis, which covers both approximations.
static int plausible(const tables *t, char *text, size_t text_size) {
    double largest = 0;
    for (int i = 0; i <= 20; ++i) {
        for (int j = 1; j <= 20; ++j) {
            const number2 z = {-2 + 0.2 * i, 0.1 * j};
            largest = fmax(largest, apart(poles_faddeeva(t->values, z), series(z)));
        }
    }
    for (double y = 0.05; y < 20; y += 0.05) {
        const number2 exact = {exp(y * y) * erfc(y), 0};
        largest = fmax(largest, apart(poles_faddeeva(t->values, (number2){0, y}), exact));
    }
    snprintf(text, text_size, "w(z) within %.1e of its series and of the error function", largest);
    return largest <= 3e-5;
}

const lookup_kind lookup_poles = {"poles", "windowed poles, bound by computing", 1, make,
                                  plausible};
