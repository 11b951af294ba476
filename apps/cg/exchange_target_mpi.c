// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Exchange with MPI between devices. MPI's buffers are the host's copies of planes and sums: that
// works with every MPI library, with or without support for devices.
#include "cg/exchange.h"

#include <mpi.h>

/* comm:begin */
enum { TO_LEFT, TO_RIGHT }; // tags: the direction of travel
/* comm:end */

void exchange_planes(const slab *s, double *vector) {
    /* comm:begin */
    const int left = s->rank > 0 ? s->rank - 1 : MPI_PROC_NULL;
    const int right = s->rank + 1 < s->ranks ? s->rank + 1 : MPI_PROC_NULL;
    const size_t n = s->plane;
    double *const before = slab_plane(s, vector, -1);
    double *const first = slab_plane(s, vector, 0);
    double *const last = slab_plane(s, vector, s->planes - 1);
    double *const after = slab_plane(s, vector, s->planes);
    MPI_Request requests[4];
    MPI_Irecv(before, (int)n, MPI_DOUBLE, left, TO_RIGHT, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(after, (int)n, MPI_DOUBLE, right, TO_LEFT, MPI_COMM_WORLD, &requests[1]);
#pragma omp target update from(first[0 : n]) if (left != MPI_PROC_NULL)
    MPI_Isend(first, (int)n, MPI_DOUBLE, left, TO_LEFT, MPI_COMM_WORLD, &requests[2]);
#pragma omp target update from(last[0 : n]) if (right != MPI_PROC_NULL)
    MPI_Isend(last, (int)n, MPI_DOUBLE, right, TO_RIGHT, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
#pragma omp target update to(before[0 : n]) if (left != MPI_PROC_NULL)
#pragma omp target update to(after[0 : n]) if (right != MPI_PROC_NULL)
    /* comm:end */
}

double exchange_sum(const slab *s, double *sum) {
    (void)s;
    /* comm:begin */
#pragma omp target update from(sum[0 : 1])
    MPI_Allreduce(MPI_IN_PLACE, sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
#pragma omp target update to(sum[0 : 1])
    /* comm:end */
    return *sum;
}

void exchange_pair(double sums[2]) {
    /* comm:begin */
    MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    /* comm:end */
}
