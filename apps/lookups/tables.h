// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Data of both kinds of cross-section lookups: nuclides, materials that consist of some of them,
// and events: neutrons of an energy in a material, which need the material's cross sections.
#ifndef LOOKUPS_TABLES_H
#define LOOKUPS_TABLES_H

#include "common/scatter.h"

#include <stddef.h>
#include <stdint.h>

enum { MATERIALS = 12, CHANNELS = 5 };

// All data is in two arrays, which devices get; the other members are sizes and offsets.
typedef struct tables {
    double *values;
    int *indices;
    size_t num_values, num_indices;
    int nuclides;
    int points;       // of a nuclide: grid points, or windows
    int poles;        // in a window
    size_t data;      // in values: of the kind of lookup
    size_t fractions; // in values: of each entry of a material, its nuclide's share
    size_t starts;    // in indices: MATERIALS + 1 first entries
    size_t entries;   // in indices: their nuclides
} tables;

typedef struct event {
    double energy; // from 0.01 to 1
    int material;
} event;

#pragma omp declare target
// Returns a number from 0 to 1.
static inline double fraction(uint64_t number) { return 0.5 + 0.5 * scatter(number); }

// Returns the event of this number, equal on all devices: neutrons prefer fuel (material 0) and
// water (2).
static inline event event_make(uint64_t number) {
    const double bounds[MATERIALS - 1] = {.14, .19, .46, .60, .74, .80, .86, .92, .94, .96, .98};
    const double draw = fraction(2 * number + 1);
    event e = {0.01 + 0.99 * fraction(2 * number), 0};
    for (int m = 0; m < MATERIALS - 1; ++m) {
        e.material += draw >= bounds[m];
    }
    return e;
}

// Returns the largest channel, weighted by the event's number: a sum of scores does not depend on
// its order, nor on the last bits of cross sections, and detects lost or swapped events.
static inline uint64_t event_score(const double sections[CHANNELS], uint64_t number) {
    int best = 0;
    for (int c = 1; c < CHANNELS; ++c) {
        best = sections[c] > sections[best] ? c : best;
    }
    return (uint64_t)(best + 1) * (2 * number + 1);
}
#pragma omp end declare target

// Count the nuclides of all materials, and write them at the tables' offsets.
size_t materials_entries(int nuclides);
void materials_fill(tables *t);

// One kind of lookup.
typedef struct lookup_kind {
    const char *name;
    const char *what;
    int is_poles; // which lookup the devices run
    // Makes the tables; returns -1 if there is not enough memory.
    int (*make)(tables *t, int nuclides, int points, int poles);
    // Returns whether another method gives the same cross sections; `text` gets the difference.
    int (*plausible)(const tables *t, char *text, size_t text_size);
} lookup_kind;

extern const lookup_kind lookup_grid, lookup_poles;

#endif
