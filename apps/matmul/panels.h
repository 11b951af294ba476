// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The bcasts of SUMMA's panels, the only part of it that differs between DiOMP and MPI. The ranks
// form a grid; all functions are collective.
#ifndef MATMUL_PANELS_H
#define MATMUL_PANELS_H

#include <stddef.h>

typedef struct panel {
    double *data; // memory of comm_alloc
    size_t bytes;
    int root; // grid column of A's panel, grid row of B's
} panel;

void panels_init(int grid_row, int grid_column);
// Starts to pass `a` to the ranks of the grid row and `b` to those of the grid column. Until
// panels_finish with the same slot (0 or 1), they may be read at their roots and must not be
// touched elsewhere.
void panels_start(int slot, const panel *a, const panel *b);
// To be called between start and finish, for libraries that transfer data only inside calls; NULL
// for those that need no calls.
extern void (*const panels_progress)(void);
void panels_finish(int slot);
void panels_free(void);

#endif
