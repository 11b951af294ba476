// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Exchange with DiOMP between devices: each rank writes its outer planes from its device's memory
// directly into its neighbours' copies of them, and sums are computed on the devices.
//
// A rank's own pointer addresses the neighbour's device copy, since all ranks map the same data in
// the same order. No copy is overwritten early: a neighbour has read the copies that this rank
// replaces before it took part in the sum between the two calls (exchange.h). The copies are
// complete on return: the barrier includes every rank's fence, which completes its puts.
#include "cg/exchange.h"
#include "diomp.h"

void exchange_planes(const slab *s, double *vector) {
    /* comm:begin */
    const int d = s->device;
    const size_t n = s->plane * sizeof(double); // bytes
    if (s->rank > 0) {
        double *const copy = slab_plane(s, vector, s->left_planes);
        ompx_target_put_nb(s->rank - 1, copy, d, slab_plane(s, vector, 0), d, n, NULL);
    }
    if (s->rank + 1 < s->ranks) {
        double *const last = slab_plane(s, vector, s->planes - 1);
        ompx_target_put_nb(s->rank + 1, slab_plane(s, vector, -1), d, last, d, n, NULL);
    }
    ompx_barrier();
    /* comm:end */
}

double exchange_sum(const slab *s, double *sum) {
    /* comm:begin */
    ompx_target_allreduce(sum, sum, s->device, 1, OMPX_DOUBLE, OMPX_SUM, ompx_group_world);
#pragma omp target update from(sum[0 : 1])
    /* comm:end */
    return *sum;
}

void exchange_pair(double sums[2]) {
    /* comm:begin */
    ompx_allreduce(sums, sums, 2, OMPX_DOUBLE, OMPX_SUM, ompx_group_world);
    /* comm:end */
}
