// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lookups/tables.h"

// Fuel holds half of all nuclides, other materials few.
static int nuclides_of(int material, int nuclides) {
    const int few = 4 + material * 7 % 23;
    const int half = nuclides / 2 > 0 ? nuclides / 2 : 1;
    return material == 0 || few > half ? half : few;
}

size_t materials_entries(int nuclides) {
    size_t count = 0;
    for (int m = 0; m < MATERIALS; ++m) {
        count += (size_t)nuclides_of(m, nuclides);
    }
    return count;
}

void materials_fill(tables *t) {
    int next = 0;
    for (int m = 0; m < MATERIALS; ++m) {
        t->indices[t->starts + (size_t)m] = next;
        for (int i = 0; i < nuclides_of(m, t->nuclides); ++i, ++next) {
            t->indices[t->entries + (size_t)next] = (5 * m + i) % t->nuclides;
            t->values[t->fractions + (size_t)next] =
                0.1 + fraction(((uint64_t)7 << 40) + (uint64_t)next);
        }
    }
    t->indices[t->starts + MATERIALS] = next;
}
