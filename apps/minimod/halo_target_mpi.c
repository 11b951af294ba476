// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Halo exchange with MPI between devices. MPI's buffers are the host's copies of the edges and
// halos: that works with every MPI library, with or without support for devices.
#include "minimod/halo.h"

#include <mpi.h>

/* comm:begin */
enum { TO_LEFT, TO_RIGHT }; // tags: the direction of travel
static int left;
static int right;
static MPI_Request requests[4];
static float *pending_field; // the field whose halos are arriving
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
    const size_t count = HALO * g->plane;
    float *const first = grid_plane(g, field, 0);
    float *const last = grid_plane(g, field, g->local_nx - HALO);
    float *const before = grid_plane(g, field, -HALO);
    float *const after = grid_plane(g, field, g->local_nx);
    MPI_Irecv(before, (int)count, MPI_FLOAT, left, TO_RIGHT, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(after, (int)count, MPI_FLOAT, right, TO_LEFT, MPI_COMM_WORLD, &requests[1]);
#pragma omp target update from(first[0 : count]) if (left != MPI_PROC_NULL)
    MPI_Isend(first, (int)count, MPI_FLOAT, left, TO_LEFT, MPI_COMM_WORLD, &requests[2]);
#pragma omp target update from(last[0 : count]) if (right != MPI_PROC_NULL)
    MPI_Isend(last, (int)count, MPI_FLOAT, right, TO_RIGHT, MPI_COMM_WORLD, &requests[3]);
    pending_field = field;
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
    (void)step;
    /* comm:begin */
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    const size_t count = HALO * g->plane;
    float *const before = grid_plane(g, pending_field, -HALO);
    float *const after = grid_plane(g, pending_field, g->local_nx);
#pragma omp target update to(before[0 : count]) if (left != MPI_PROC_NULL)
#pragma omp target update to(after[0 : count]) if (right != MPI_PROC_NULL)
    /* comm:end */
}

void halo_free(void) {}
