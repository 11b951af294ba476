// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The grid, its split along X, and the memory layout of a rank's planes.
//
// Glossary: plane: all points of one x. own planes: those that a rank computes, local x from 0 to
// local_nx - 1. halo: the HALO planes before and after them, copies of the neighbours' own planes
// (zero at the ends of the grid).
#ifndef MINIMOD_GRID_H
#define MINIMOD_GRID_H

#include <stddef.h>

enum { HALO = 4 };  // half the order of the stencil in space
enum { LINE = 16 }; // floats in a cache line

typedef struct grid {
    int nx, ny, nz; // points of the whole grid; z is contiguous in memory
    int rank, ranks;
    int first_x;  // x of the first own plane in the whole grid
    int local_nx; // own planes
    int max_nx;   // most own planes of any rank
    int left_nx;  // own planes of rank - 1, 0 if there is none
    size_t pitch; // floats from one row (same x and y) to the next
    size_t plane; // floats from one plane to the next
    size_t lead;  // floats before the first halo plane
    size_t count; // floats of an array that is large enough on every rank
} grid;

static inline int grid_planes(int nx, int rank, int ranks) {
    return nx / ranks + (rank < nx % ranks);
}

// A row is followed by zeros, which are also the ghost points before the next row; a plane is
// followed by HALO rows of zeros, which are also the ghost rows before the next plane. So the HALO
// planes that neighbours exchange are contiguous, and z = 0 is aligned to a cache line.
static inline grid grid_split(int nx, int ny, int nz, int rank, int ranks) {
    grid g;
    g.nx = nx;
    g.ny = ny;
    g.nz = nz;
    g.rank = rank;
    g.ranks = ranks;
    g.local_nx = grid_planes(nx, rank, ranks);
    g.max_nx = grid_planes(nx, 0, ranks);
    g.left_nx = rank > 0 ? grid_planes(nx, rank - 1, ranks) : 0;
    const int extra = nx % ranks;
    g.first_x = rank * (nx / ranks) + (rank < extra ? rank : extra);
    g.pitch = ((size_t)nz + HALO + LINE - 1) / LINE * LINE;
    // Rows a multiple of 2 KiB apart would share few cache sets, and a point reads 17 rows.
    if (g.pitch % 512 == 0) {
        g.pitch += LINE;
    }
    g.plane = ((size_t)ny + HALO) * g.pitch;
    g.lead = HALO * g.pitch + LINE;
    g.count = g.lead + ((size_t)g.max_nx + 2 * (size_t)HALO) * g.plane + LINE;
    return g;
}

// First point of the plane with the local x, from -HALO to local_nx + HALO - 1.
static inline float *grid_plane(const grid *g, float *field, int x) {
    return field + g->lead + (size_t)(x + HALO) * g->plane;
}

#endif
