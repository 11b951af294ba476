// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ring shift with MPI between devices. MPI's buffers are the host's copies of the stripes: that
// works with every MPI library, with or without support for devices.
#include "common/comm.h"
#include "matmul/ring.h"

#include <mpi.h>

/* comm:begin */
static MPI_Request requests[2];
static double *recv_buffer;
static int recv_count;
/* comm:end */

void ring_start(double *spare, double *stripe, size_t bytes, size_t capacity) {
    /* comm:begin */
    const int left = (comm_rank() + comm_ranks() - 1) % comm_ranks();
    const int right = (comm_rank() + 1) % comm_ranks();
    const int sent = (int)(bytes / sizeof(double));
    recv_count = (int)(capacity / sizeof(double));
    recv_buffer = spare;
    MPI_Irecv(spare, recv_count, MPI_DOUBLE, right, 0, MPI_COMM_WORLD, &requests[0]);
#pragma omp target update from(stripe[0 : sent])
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
#pragma omp target update to(recv_buffer[0 : recv_count])
    /* comm:end */
}
