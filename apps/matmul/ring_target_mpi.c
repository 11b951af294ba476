// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ring shift with MPI between devices. MPI's buffers are the host's copies of the stripes: that
// works with every MPI, whether or not it knows devices.
#include "common/comm.h"
#include "matmul/ring.h"

#include <mpi.h>

/* comm:begin */
static MPI_Request requests[2];
static double *arriving;
static int room;
/* comm:end */

void ring_start(double *spare, double *stripe, size_t bytes, size_t capacity) {
    /* comm:begin */
    const int left = (comm_rank() + comm_ranks() - 1) % comm_ranks();
    const int right = (comm_rank() + 1) % comm_ranks();
    const int sent = (int)(bytes / sizeof(double));
    room = (int)(capacity / sizeof(double));
    arriving = spare;
    MPI_Irecv(spare, room, MPI_DOUBLE, right, 0, MPI_COMM_WORLD, &requests[0]);
#pragma omp target update from(stripe[0 : sent])
    MPI_Isend(stripe, sent, MPI_DOUBLE, left, 0, MPI_COMM_WORLD, &requests[1]);
    /* comm:end */
}

void ring_progress(void) {
    /* comm:begin */
    int done = 0;
    MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE);
    /* comm:end */
}

void ring_finish(void) {
    /* comm:begin */
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
#pragma omp target update to(arriving[0 : room])
    /* comm:end */
}
