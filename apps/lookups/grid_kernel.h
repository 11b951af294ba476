// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lookups bound by memory, after the idea of XSBench (Tramm et al. 2014): one search in the united
// energies of all nuclides, then for each nuclide of the material two points of its own grid.
#ifndef LOOKUPS_GRID_KERNEL_H
#define LOOKUPS_GRID_KERNEL_H

#include "lookups/tables.h"

#pragma omp declare target
enum { POINT = 1 + CHANNELS }; // of a nuclide's grid: energy, cross sections

// values: united energies, then [nuclide][point][POINT]. indices: for each united energy, the point
// of each nuclide at or below it.

// Returns the index of the last of n ascending energies, `step` apart, that is not above `energy`;
// the first one must not be above.
static inline size_t grid_search(const double *energies, size_t n, size_t step, double energy) {
    size_t low = 0;
    size_t high = n;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        const int above = energies[middle * step] > energy;
        high = above ? middle : high;
        low = above ? low : middle;
    }
    return low;
}

static inline void grid_add(double sections[CHANNELS], const double *point, double energy,
                            double weight) {
    const double *const next = point + POINT;
    const double along = (energy - point[0]) / (next[0] - point[0]);
    for (int c = 1; c <= CHANNELS; ++c) {
        sections[c - 1] += weight * (point[c] + along * (next[c] - point[c]));
    }
}

static inline uint64_t grid_lookup(const tables *t, const double *values, const int *indices,
                                   uint64_t number) {
    const event e = event_make(number);
    const size_t nuclides = (size_t)t->nuclides;
    const size_t united = nuclides * (size_t)t->points;
    const int *const row = indices + grid_search(values, united, 1, e.energy) * nuclides;
    double sections[CHANNELS] = {0};
    const int end = indices[t->starts + (size_t)e.material + 1];
    for (int i = indices[t->starts + (size_t)e.material]; i < end; ++i) {
        const size_t nuclide = (size_t)indices[t->entries + (size_t)i];
        const size_t at = nuclide * (size_t)t->points + (size_t)row[nuclide];
        grid_add(sections, values + t->data + at * POINT, e.energy,
                 values[t->fractions + (size_t)i]);
    }
    return event_score(sections, number);
}
#pragma omp end declare target

#endif
