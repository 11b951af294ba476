// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Halo exchange with MPI: nonblocking sends and receives directly from and into the field.
#include "minimod/halo.h"

#include <mpi.h>

/* comm:begin */
enum { TO_LEFT, TO_RIGHT }; // tags: the direction of travel
static int left;
static int right;
static MPI_Request requests[4];
/* comm:end */

void halo_init(const grid *g) {
    /* comm:begin */
    left = g->rank > 0 ? g->rank - 1 : MPI_PROC_NULL;
    right = g->rank + 1 < g->ranks ? g->rank + 1 : MPI_PROC_NULL;
    /* comm:end */
}

void halo_start(const grid *g, float *field, int step) {
    (void)step;
    /* comm:begin */
    const int count = (int)(HALO * g->plane);
    MPI_Irecv(grid_plane(g, field, -HALO), count, MPI_FLOAT, left, TO_RIGHT, MPI_COMM_WORLD,
              &requests[0]);
    MPI_Irecv(grid_plane(g, field, g->local_nx), count, MPI_FLOAT, right, TO_LEFT, MPI_COMM_WORLD,
              &requests[1]);
    MPI_Isend(grid_plane(g, field, 0), count, MPI_FLOAT, left, TO_LEFT, MPI_COMM_WORLD,
              &requests[2]);
    MPI_Isend(grid_plane(g, field, g->local_nx - HALO), count, MPI_FLOAT, right, TO_RIGHT,
              MPI_COMM_WORLD, &requests[3]);
    /* comm:end */
}

const int halo_progress_interval = 32;

void halo_progress(void) {
    /* comm:begin */
    int done = 0;
    MPI_Testall(4, requests, &done, MPI_STATUSES_IGNORE);
    /* comm:end */
}

void halo_finish(const grid *g, int step) {
    (void)g;
    (void)step;
    /* comm:begin */
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    /* comm:end */
}

void halo_free(void) {}
