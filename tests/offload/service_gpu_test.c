/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * GPUs of services: memory that does not fit into their segment, devices that a rank has not used
 * yet, and addresses of other devices. One device for each rank; DIOMP_ERRORS=return,
 * DIOMP_DEVICE_SEGMENT_SIZE=64M. */
#include "support/check.h"

#include <omp.h>
#include <stdlib.h>

/* By the sessions of both, whose segments the ranks manage. */
static void between_gpus(int me, int ranks) {
    enum { COUNT = 300000, BYTES = COUNT * sizeof(int64_t) };
    int const host = omp_get_initial_device(), next = (me + 1) % ranks;
    int const previous = (me + ranks - 1) % ranks;
    int64_t *const from = ompx_target_alloc(BYTES, 0, ompx_symmetric_mem_alloc);
    int64_t *const to = ompx_target_alloc(BYTES, 0, ompx_symmetric_mem_alloc);
    int64_t *const plain = malloc(BYTES);
    static int64_t mapped[1000];
    CHECK(from != NULL && to != NULL);
    for (int64_t i = 0; i < COUNT; ++i) {
        plain[i] = i * (me + 1);
    }
    CHECK(ompx_target_put(me, from, 0, plain, host, BYTES) == 0);
    for (size_t count = 1; count <= COUNT; count = count * 7 + 1) {
        memset(plain, -1, BYTES);
        CHECK(ompx_target_put(me, to, 0, plain, host, BYTES) == 0 && ompx_barrier() == 0);
        ompx_event_t event = NULL;
        CHECK(ompx_target_put_nb(next, to, 0, from, 0, count * sizeof *to, &event) == 0);
        CHECK(ompx_event_wait(&event) == 0 && ompx_barrier() == 0);
        CHECK(ompx_target_get(plain, host, me, to, 0, BYTES) == 0);
        for (size_t i = 0; i < COUNT; ++i) {
            CHECK(plain[i] == (i < count ? (int64_t)i * (previous + 1) : -1));
        }
        CHECK(ompx_target_get(to, 0, next, from + 1, 0, (count - 1) * sizeof *to) == 0);
        CHECK(ompx_target_get(plain, host, me, to, 0, BYTES) == 0);
        for (size_t i = 0; i + 1 < count; ++i) {
            CHECK(plain[i] == (int64_t)(i + 1) * (next + 1));
        }
        CHECK(ompx_barrier() == 0);
    }
    /* What OpenMP has mapped, in rows. */
    for (int i = 0; i < 1000; ++i) {
        mapped[i] = i + 1000 * me;
    }
#pragma omp target enter data map(to : mapped)
    CHECK(ompx_barrier() == 0);
    size_t const shape[2] = {3, 4}, whole[2] = {20, 50}, at[2] = {5, 6}, off[2] = {9, 9};
    CHECK(ompx_target_get_rect(mapped, 0, next, mapped, 0, sizeof *mapped, 2, shape, at, off, whole,
                               whole) == 0);
    CHECK(ompx_barrier() == 0);
#pragma omp target update from(mapped)
    for (int i = 0; i < 1000; ++i) {
        int const row = i / 50 - 5, column = i % 50 - 6;
        int const is_in = row >= 0 && row < 3 && column >= 0 && column < 4;
        CHECK(mapped[i] == (is_in ? i + 4 * 50 + 3 + 1000 * next : i + 1000 * me));
    }
#pragma omp target exit data map(delete : mapped)
    /* Collectives, on all of the memory and on parts of it, and of a variable beside the segment.
     */
    int64_t const all = (int64_t)ranks * (ranks + 1) / 2;
    for (size_t count = 1; count <= COUNT; count = count * 30 + 7) {
        CHECK(ompx_target_allreduce(to, from, 0, count, OMPX_INT64, OMPX_SUM, ompx_group_world) ==
              0);
        CHECK(ompx_target_get(plain, host, me, to, 0, count * sizeof *to) == 0);
        for (size_t i = 0; i < count; ++i) {
            CHECK(plain[i] == (int64_t)i * all);
        }
        CHECK(ompx_target_bcast_from(to, 0, count * sizeof *to, ranks - 1, ompx_group_world) == 0);
    }
    FAILS(ompx_target_put(next, to + 1, 0, from, 0, BYTES), OMPX_ERR_RANGE, "past the end");
    FAILS(ompx_target_get(to, 0, ranks, from, 0, 8), OMPX_ERR_RANK, "outside the world");
    CHECK(ompx_barrier() == 0);
    CHECK(ompx_target_free(from, 0) == 0 && ompx_target_free(to, 0) == 0);
    free(plain);
}

int main(void) {
    int const me = ompx_rank_num(), ranks = ompx_num_ranks(), next = (me + 1) % ranks;
    int const host = omp_get_initial_device();
    size_t const nbytes = (size_t)100 << 20;
    char small[64] = {0};
    CHECK(omp_get_num_devices() == 1);
    /* No region has run yet: the mistake is the missing map. */
    FAILS(ompx_target_put(next, small, 0, small, host, sizeof small), OMPX_ERR_ADDRESS,
          "neither mapped on device 0");
    char *const large = malloc(nbytes);
    memset(large, me + 1, nbytes);
#pragma omp target enter data map(to : large[0 : nbytes])
    int seen = 0;
#pragma omp target map(from : seen) map(to : large[0 : nbytes])
    seen = large[nbytes - 1];
    CHECK(seen == me + 1);
    FAILS(ompx_target_get(small, host, me, large, 0, sizeof small), OMPX_ERR_ADDRESS,
          "not in its segment");
    FAILS(ompx_target_put(next, large, 0, small, host, sizeof small), OMPX_ERR_ADDRESS,
          "not in its segment");
    FAILS(ompx_target_bcast(large, 0, sizeof small, 0, ompx_group_world), OMPX_ERR_ADDRESS,
          "not in its segment");
#pragma omp target exit data map(release : large[0 : nbytes])
    /* What the segment holds is reached by all. */
    char *const kept = ompx_target_alloc(1000, 0, ompx_symmetric_mem_alloc);
    CHECK(kept != NULL);
    memset(large, 10 + me, 1000);
    CHECK(ompx_target_put(next, kept, 0, large, host, 1000) == 0);
    CHECK(ompx_barrier() == 0);
    memset(large, 0, 1000);
    CHECK(ompx_target_get(large, host, next, kept, 0, 1000) == 0);
    CHECK(large[0] == 10 + me && large[999] == 10 + me);
    CHECK(ompx_barrier() == 0);
    FAILS(ompx_target_put(next, kept, 0, large, host, 1001), OMPX_ERR_RANGE, "past the end");
    /* In rows. */
    size_t const shape[2] = {4, 10}, whole[2] = {20, 50}, at[2] = {2, 5}, zero[2] = {0, 0};
    memset(large, 77, 40);
    CHECK(ompx_target_put_rect(next, kept, 0, large, host, 1, 2, shape, at, zero, whole, shape) ==
          0);
    CHECK(ompx_barrier() == 0);
    memset(large, 0, 1000);
    CHECK(ompx_target_get(large, host, me, kept, 0, 1000) == 0);
    for (int i = 0; i < 1000; ++i) {
        int const row = i / 50, column = i % 50;
        int const is_in = row >= 2 && row < 6 && column >= 5 && column < 15;
        CHECK(large[i] == (is_in ? 77 : 10 + (me + ranks - 1) % ranks));
    }
    CHECK(ompx_barrier() == 0);
    CHECK(ompx_target_free(kept, 0) == 0);
    between_gpus(me, ranks);
    /* A rank whose main has returned still copies for others. */
    char *const left = ompx_target_alloc(1000, 0, ompx_symmetric_mem_alloc);
    CHECK(left != NULL && ompx_barrier() == 0);
    for (int round = 0; me == 0 && round < 300; ++round) {
        memset(large, round, 1000);
        CHECK(ompx_target_put(next, left, 0, large, host, 1000) == 0);
        memset(large, -1, 1000);
        CHECK(ompx_target_get(large, host, next, left, 0, 1000) == 0);
        CHECK(large[0] == (char)round && large[999] == (char)round);
    }
    free(large);
    printf("service's GPU: ok\n");
    return 0;
}
