/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* A program in the words of earlier DiOMP versions: each rank fills its right neighbour's space,
 * counts under a lock, reduces and broadcasts. Ends with 1 and a message on a wrong result. */
#include "diomp_compat.h"

#include <stdio.h>

static int failures = 0;

static void expect(int line, long long actual, long long expected) {
    if (actual != expected) {
        fprintf(stderr, "rank %d, line %d: %lld instead of %lld\n", omp_get_rank_num(), line,
                actual, expected);
        ++failures;
    }
}
#define EXPECT(actual, expected) expect(__LINE__, (long long)(actual), (long long)(expected))

static void check_space(int rank, int num_ranks) {
    int const right = (rank + 1) % num_ranks;
    int const left = (rank + num_ranks - 1) % num_ranks;
    EXPECT(omp_get_length_space(right), 1 << 20);
    int out[256];
    for (int i = 0; i < 256; ++i) {
        out[i] = rank * 1000 + i;
    }
    diomp_barrier();
    omp_put(right, (int *)omp_get_space(right) + 16, out, sizeof out);
    diomp_waitRMA(omp_ev_put);
    diomp_barrier(ompx_group_world);
    int const *own = (int const *)omp_get_space(rank) + 16;
    EXPECT(own[0], left * 1000);
    EXPECT(own[255], left * 1000 + 255);
    int in[256] = {0};
    omp_get(in, right, (int *)omp_get_space(right) + 16, sizeof in);
    diomp_waitALLRMA();
    EXPECT(in[255], rank * 1000 + 255);
    diomp_barrier();
}

static void check_lock(int num_ranks) {
    long long *counter = (long long *)llvm_omp_distributed_alloc(sizeof *counter);
    *counter = 0;
    diomp_barrier();
    for (int i = 0; i < 50; ++i) {
        diomp_lock(0);
        long long value = 0;
        omp_get(&value, 0, counter, sizeof value);
        diomp_waitRMA(omp_ev_get);
        ++value;
        omp_put(0, counter, &value, sizeof value);
        diomp_waitALLRMA();
        diomp_unlock(0);
    }
    diomp_barrier();
    if (omp_get_rank_num() == 0) {
        EXPECT(*counter, 50LL * num_ranks);
    }
    diomp_barrier();
    EXPECT(ompx_free(counter), 0);
}

static void check_collectives(int rank, int num_ranks) {
    int const root = num_ranks - 1;
    int value = rank == root ? 99 : 0;
    omp_bcast(&value, sizeof value, root);
    EXPECT(value, 99);
    double const mine[2] = {rank, 1};
    double sum[2] = {0, 0};
    omp_allreduce(mine, sum, 2, omp_double, omp_op_add);
    EXPECT(sum[0], num_ranks * (num_ranks - 1) / 2);
    EXPECT(sum[1], num_ranks);
    int32_t const bit = (int32_t)1 << rank;
    int32_t bits = 0;
    omp_reduce(&bit, &bits, 1, omp_int32, omp_op_bit_or, root);
    if (rank == root) {
        EXPECT(bits, (1 << num_ranks) - 1);
    }
}

/* Names that the getters had before version 1. */
static void check_getters(int rank, int num_ranks) {
    EXPECT(ompx_get_rank_num(), rank);
    EXPECT(ompx_get_num_ranks(), num_ranks);
    EXPECT(ompx_rank_num(), rank);
    EXPECT(ompx_num_ranks(), num_ranks);
    EXPECT(ompx_get_local_rank_num(), ompx_local_rank_num());
    EXPECT(ompx_get_num_local_ranks(), ompx_num_local_ranks());
    EXPECT(ompx_get_num_rank_devices(), ompx_num_rank_devices());
    for (int i = 0; i < ompx_num_rank_devices(); ++i) {
        EXPECT(ompx_get_rank_device(i), ompx_rank_device(i));
    }
}

int main(void) {
    omp_set_distributed_size(1 << 20);
    __init_diomp();
    __init_diomp_target(2); /* a second start changes nothing */
    int const rank = omp_get_rank_num();
    int const num_ranks = omp_get_num_ranks();
    check_getters(rank, num_ranks);
    check_space(rank, num_ranks);
    check_lock(num_ranks);
    check_collectives(rank, num_ranks);
    return failures == 0 ? 0 : 1;
}
