// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A column of points along X, WIDE neighbours along Z in width, computed by one thread of a GPU:
// the planes before and after the present one stay in registers, neighbours along Y and Z come from
// the first-level cache, a vector at a time. A point then moves 4 bytes each of the field ahead
// (read and written), of the present one and of the factor to or from memory. The sponge is a
// product at every point, so there is no branch.
#ifndef MINIMOD_COLUMN_H
#define MINIMOD_COLUMN_H

#include "minimod/minimod_tile.h"

enum { WIDE = 4 };
typedef float wide __attribute__((ext_vector_type(WIDE)));

// Pointers are at multiples of `wide` from the start of the arrays, which must be aligned to it.
static inline wide load_wide(const float *from) { return *(const wide *)from; }

// queue[HALO] is the plane that `now` points into.
static inline wide step_wide(const float *restrict now, const wide queue[2 * HALO + 1],
                             ptrdiff_t row, wide factor, float damp_xy, wide damp_z, wide before) {
    const wide left = load_wide(now - WIDE);
    const wide right = load_wide(now + WIDE);
    const wide here = queue[HALO];
    const float line[3 * WIDE] = {left[0], left[1], left[2],  left[3],  here[0],  here[1],
                                  here[2], here[3], right[0], right[1], right[2], right[3]};
    wide down[HALO];
    wide up[HALO];
#pragma unroll
    for (int r = 0; r < HALO; ++r) {
        down[r] = load_wide(now - (r + 1) * row);
        up[r] = load_wide(now + (r + 1) * row);
    }
    wide result;
#pragma unroll
    for (int i = 0; i < WIDE; ++i) {
        float ring[HALO];
#pragma unroll
        for (int r = 0; r < HALO; ++r) {
            const int far = r + 1;
            ring[r] = (line[WIDE + i - far] + line[WIDE + i + far]) + (down[r][i] + up[r][i]) +
                      (queue[HALO - far][i] + queue[HALO + far][i]);
        }
        result[i] = step_point(here[i], ring, factor[i], damp_xy * damp_z[i], before[i]);
    }
    return result;
}

// `planes` planes from x_begin on; all pointers are at the column's first point.
static inline void step_column(float *restrict ahead, const float *restrict now,
                               const float *restrict factor, const float *restrict damp_x,
                               float damp_y, const float *restrict damp_z, int planes,
                               ptrdiff_t row, ptrdiff_t plane) {
    const wide damp = load_wide(damp_z);
    wide queue[2 * HALO + 1];
#pragma unroll
    for (int k = 0; k < 2 * HALO; ++k) {
        queue[k] = load_wide(now + (k - HALO) * plane);
    }
    // Data from memory is loaded one plane before its use.
    wide front = load_wide(now + HALO * plane);
    wide before = load_wide(ahead);
    wide speed = load_wide(factor);
#pragma unroll 1
    for (int p = 0; p < planes; ++p) {
        queue[2 * HALO] = front;
        const wide old = before;
        const wide here = speed;
        if (p + 1 < planes) {
            front = load_wide(now + (HALO + 1) * plane);
            before = load_wide(ahead + plane);
            speed = load_wide(factor + plane);
        }
        *(wide *)ahead = step_wide(now, queue, row, here, damp_x[p] * damp_y, damp, old);
#pragma unroll
        for (int k = 0; k < 2 * HALO; ++k) {
            queue[k] = queue[k + 1];
        }
        ahead += plane;
        now += plane;
        factor += plane;
    }
}

#endif
