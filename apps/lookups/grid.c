// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lookups/grid_kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLED = 20000 }; // events that are also looked up by another method

static int ascending(const void *a, const void *b) {
    const double left = *(const double *)a;
    const double right = *(const double *)b;
    return (left > right) - (left < right);
}

// Fills each nuclide's energies from 0 to 1, so that all events are between two of its points.
static void fill_points(tables *t, double *united) {
    const size_t points = (size_t)t->points;
    for (size_t nuclide = 0; nuclide < (size_t)t->nuclides; ++nuclide) {
        double *const energies = united + nuclide * points;
        for (size_t p = 0; p < points; ++p) {
            energies[p] = fraction(nuclide * points + p);
        }
        energies[0] = 0;
        energies[points - 1] = 1.001;
        qsort(energies, points, sizeof *energies, ascending);
        for (size_t p = 0; p < points; ++p) {
            double *const point = t->values + t->data + (nuclide * points + p) * POINT;
            point[0] = energies[p];
            for (size_t c = 1; c <= CHANNELS; ++c) {
                point[c] = fraction(((nuclide * points + p) * POINT + c) + ((uint64_t)1 << 40));
            }
        }
    }
}

// Fills, for each united energy, each nuclide's point at or below it.
static int fill_index(tables *t) {
    const size_t nuclides = (size_t)t->nuclides;
    const size_t points = (size_t)t->points;
    const double *const own = t->values + t->data;
    int *const at = calloc(nuclides, sizeof *at);
    if (at == NULL) {
        return -1;
    }
    for (size_t u = 0; u < nuclides * points; ++u) {
        for (size_t n = 0; n < nuclides; ++n) {
            while (at[n] + 2 < t->points &&
                   own[(n * points + (size_t)at[n] + 1) * POINT] <= t->values[u]) {
                ++at[n];
            }
        }
        memcpy(t->indices + u * nuclides, at, nuclides * sizeof *at);
    }
    free(at);
    return 0;
}

static int make(tables *t, int nuclides, int points, int poles) {
    (void)poles;
    *t = (tables){.nuclides = nuclides, .points = points};
    const size_t united = (size_t)nuclides * (size_t)points;
    const size_t entries = materials_entries(nuclides);
    t->data = united;
    t->fractions = t->data + united * POINT;
    t->num_values = t->fractions + entries;
    t->starts = united * (size_t)nuclides;
    t->entries = t->starts + MATERIALS + 1;
    t->num_indices = t->entries + entries;
    t->values = malloc(t->num_values * sizeof *t->values);
    t->indices = malloc(t->num_indices * sizeof *t->indices);
    if (t->values == NULL || t->indices == NULL) {
        return -1;
    }
    fill_points(t, t->values);
    qsort(t->values, united, sizeof *t->values, ascending);
    materials_fill(t);
    return fill_index(t);
}

// Looks up without the united grid: searches in each nuclide's own grid.
static uint64_t look_up_directly(const tables *t, uint64_t number) {
    const event e = event_make(number);
    const size_t points = (size_t)t->points;
    double sections[CHANNELS] = {0};
    for (int i = t->indices[t->starts + (size_t)e.material];
         i < t->indices[t->starts + (size_t)e.material + 1]; ++i) {
        const size_t nuclide = (size_t)t->indices[t->entries + (size_t)i];
        const double *const own = t->values + t->data + nuclide * points * POINT;
        const size_t at = grid_search(own, points - 1, POINT, e.energy);
        grid_add(sections, own + at * POINT, e.energy, t->values[t->fractions + (size_t)i]);
    }
    return event_score(sections, number);
}

static int plausible(const tables *t, char *text, size_t text_size) {
    int apart = 0;
    for (uint64_t i = 0; i < SAMPLED; ++i) {
        apart += look_up_directly(t, i) != grid_lookup(t, t->values, t->indices, i);
    }
    snprintf(text, text_size, "%d of %d lookups differ from those in each nuclide's own grid",
             apart, SAMPLED);
    return apart == 0;
}

const lookup_kind lookup_grid = {"grid", "united energy grid, bound by memory", 0, make, plausible};
