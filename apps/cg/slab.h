// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The grid of the equation, its split along X, and the memory layout of a rank's planes.
//
// Own planes have the local x from 0 to planes - 1. Plane -1 and plane `planes` are copies of the
// neighbours' planes, or zero at the ends of the grid. Every row and plane has a rim of zeros, the
// value at the boundary, so that no point is a special case.
#ifndef CG_SLAB_H
#define CG_SLAB_H

#include <stddef.h>

typedef struct slab {
    int nx, ny, nz; // inner points of the whole grid; z is contiguous in memory
    int rank, ranks;
    int first;       // x of the first own plane in the whole grid
    int planes;      // own ones
    int left_planes; // planes of rank - 1, 0 if there is none
    size_t pitch;    // doubles from one row to the next
    size_t plane;    // doubles from one plane to the next
    int device;      // OpenMP's number of the device that holds the planes
    size_t count;    // doubles of a vector, the same on every rank
} slab;

static inline int slab_planes(int nx, int rank, int ranks) {
    return nx / ranks + (rank < nx % ranks);
}

static inline slab slab_split(const int size[3], int rank, int ranks, int device) {
    slab s = {.nx = size[0], .ny = size[1], .nz = size[2]};
    s.rank = rank;
    s.ranks = ranks;
    s.device = device;
    const int extra = s.nx % ranks;
    s.first = rank * (s.nx / ranks) + (rank < extra ? rank : extra);
    s.planes = slab_planes(s.nx, rank, ranks);
    s.left_planes = rank > 0 ? slab_planes(s.nx, rank - 1, ranks) : 0;
    s.pitch = (size_t)s.nz + 2;
    s.plane = ((size_t)s.ny + 2) * s.pitch;
    s.count = ((size_t)slab_planes(s.nx, 0, ranks) + 2) * s.plane;
    return s;
}

// The plane with the local x, from -1 to `planes`, its rim included.
static inline double *slab_plane(const slab *s, double *vector, int x) {
    return vector + (size_t)(x + 1) * s->plane;
}

#endif
