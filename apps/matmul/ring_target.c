// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ring shift with DiOMP between devices: one put per step from this device's stripe into the spare
// one on the left neighbour's device.
//
// The stripes are mapped on the default device of every rank, first and in the same order, so a
// rank's own pointer addresses the neighbour's device copy. No buffer is overwritten early for the
// reason in ring_diomp.c; the order of calls is the same.
#include "common/comm.h"
#include "diomp.h"
#include "matmul/ring.h"

/* comm:begin */
static ompx_event_t sent;
/* comm:end */

void ring_start(double *spare, double *stripe, size_t bytes, size_t capacity) {
    (void)capacity;
    /* comm:begin */
    const int left = (comm_rank() + comm_ranks() - 1) % comm_ranks();
    const int device = omp_get_default_device();
    ompx_target_put_nb(left, spare, device, stripe, device, bytes, &sent);
    /* comm:end */
}

void (*const ring_progress)(void) = NULL;

void ring_finish(void) {
    /* comm:begin */
    ompx_event_wait(&sent);
    ompx_barrier();
    /* comm:end */
}
