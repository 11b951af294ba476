// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ring shift with MPI: a nonblocking send and receive per step.
#include "common/comm.h"
#include "matmul/ring.h"

#include <mpi.h>

/* comm:begin */
static MPI_Request requests[2];
/* comm:end */

void ring_start(double *spare, double *stripe, size_t bytes, size_t capacity) {
    /* comm:begin */
    const int left = (comm_rank() + comm_ranks() - 1) % comm_ranks();
    const int right = (comm_rank() + 1) % comm_ranks();
    const int sent = (int)(bytes / sizeof(double));
    const int recv_count = (int)(capacity / sizeof(double));
    MPI_Irecv(spare, recv_count, MPI_DOUBLE, right, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(stripe, sent, MPI_DOUBLE, left, 0, MPI_COMM_WORLD, &requests[1]);
    /* comm:end */
}

static void test_requests(void) {
    /* comm:begin */
    int done = 0;
    MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE);
    /* comm:end */
}

void (*const ring_progress)(void) = test_requests;

void ring_finish(void) {
    /* comm:begin */
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    /* comm:end */
}
