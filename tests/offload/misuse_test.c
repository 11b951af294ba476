/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Device memory used wrongly: each time an error that says what is wrong, never a wrong write. Runs
 * with DIOMP_ERRORS=return and small device segments on 2 ranks or more. */
#include "support/check.h"

#include <omp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 4096 };

static int me, ranks, next, host;
static char first[BYTES], second[BYTES];
static char untouched[BYTES];

static void meet(void) {
    CHECK(ompx_fence() == 0);
    CHECK(ompx_barrier() == 0);
}

static void arguments(void) {
    char data[8] = {0};
    FAILS(ompx_target_put(next, first, 0, data, host, 8), OMPX_ERR_ADDRESS, "neither mapped");
    FAILS(ompx_target_put(next, data, host + 1, data, host, 8), OMPX_ERR_ARG, "this process has");
    FAILS(ompx_target_get(data, host, next, data, -2, 8), OMPX_ERR_ARG, "this process has");
    FAILS(ompx_target_put(ranks, first, 0, data, host, 8), OMPX_ERR_RANK, "outside the world");
    FAILS(ompx_target_put(next, NULL, 0, data, host, 8), OMPX_ERR_ARG, "null pointer");
    CHECK(ompx_target_alloc(8, host, ompx_local_mem_alloc) == NULL);
    CHECK(strstr(ompx_last_error(), "is the host") != NULL);
    CHECK(ompx_target_alloc(8, 0, omp_default_mem_alloc) == NULL);
    CHECK(strstr(ompx_last_error(), "is not an allocator of DiOMP") != NULL);
    CHECK(ompx_target_alloc(8, 77, ompx_local_mem_alloc) == NULL);
    CHECK(strstr(ompx_last_error(), "device is 77") != NULL);
}

static void ranges(void) {
    char data[BYTES] = {0};
#pragma omp target enter data map(to : first)
    meet();
    FAILS(ompx_target_put(next, first + 8, 0, data, host, BYTES), OMPX_ERR_RANGE,
          "past the end of rank");
    FAILS(ompx_target_put(next, first, 0, first + BYTES - 8, 0, 16), OMPX_ERR_RANGE,
          "past the end of the allocation");
    FAILS(ompx_target_get(data, host, next, first + BYTES - 4, 0, 8), OMPX_ERR_RANGE,
          "past the end");
    size_t const rows[2] = {2, 8}, zero[2] = {0, 0}, late[2] = {0, 60};
    size_t const square[2] = {64, 64}, wide[2] = {64, 65};
    FAILS(ompx_target_put_rect(next, first, 0, data, host, 1, 2, rows, late, zero, square, square),
          OMPX_ERR_RANGE, "in dimension 1 the box covers");
    size_t const bottom[2] = {62, 50};
    FAILS(ompx_target_put_rect(next, first, 0, data, host, 1, 2, rows, bottom, zero, wide, square),
          OMPX_ERR_RANGE, "past the end of rank");
    FAILS(ompx_target_get_rect(first, 0, next, first, 0, 1, 2, rows, bottom, zero, wide, square),
          OMPX_ERR_RANGE, "past the end of the allocation");
    FAILS(ompx_target_get_rect(data, host, next, second, 0, 1, 2, rows, zero, zero, square, square),
          OMPX_ERR_ADDRESS, "neither mapped");
    FAILS(ompx_target_put_rect(next, first, 0, data, host, 1, 0, rows, zero, zero, square, square),
          OMPX_ERR_ARG, "0 dimensions");
    FAILS(ompx_target_put_rect(next, first, 9, data, host, 1, 2, rows, zero, zero, square, square),
          OMPX_ERR_ARG, "this process has");
    char *device = omp_get_mapped_ptr(first, 0);
    if (omp_get_num_devices() > 1) {
        FAILS(ompx_target_put(next, device, 1, data, host, 8), OMPX_ERR_ADDRESS,
              "has not used device 1");
    }
    FAILS(ompx_target_free(device, 0), OMPX_ERR_ADDRESS, "the memory is mapped");
    FAILS(ompx_target_free(device + 64, 0), OMPX_ERR_ADDRESS, "no allocation of device 0 starts");
    meet();
#pragma omp target exit data map(release : first)
    FAILS(ompx_target_put(next, device, 0, data, host, 8), OMPX_ERR_ADDRESS, "no allocation");
    void *local = ompx_target_alloc(64, 0, ompx_local_mem_alloc);
    CHECK(ompx_target_free(local, 0) == 0);
    FAILS(ompx_target_free(local, 0), OMPX_ERR_ADDRESS, "freed before");
    meet();
}

/* Ranks that map different things. */
static void disagreements(void) {
    char data[8] = {0};
    /* Nothing there. */
    if (me == 0) {
#pragma omp target enter data map(to : first)
    }
    meet();
    if (me == 0) {
        FAILS(ompx_target_put(next, first, 0, data, host, 8), OMPX_ERR_ADDRESS, "has nothing");
    }
    meet();
    if (me == 0) {
#pragma omp target exit data map(release : first)
    }
    meet();
    /* Another size. */
    size_t const length = me == 0 ? BYTES : BYTES / 2;
    char *heap = malloc(length);
#pragma omp target enter data map(to : heap[0 : length])
    meet();
    if (me == 0) {
        FAILS(ompx_target_put(next, heap, 0, data, host, 8), OMPX_ERR_MISMATCH, "2048 bytes");
        CHECK(strstr(ompx_last_error(), "4096 bytes") != NULL);
        /* Not the second time either. */
        FAILS(ompx_target_put(next, heap, 0, data, host, 8), OMPX_ERR_MISMATCH, "2048 bytes");
    }
    meet();
#pragma omp target exit data map(release : heap[0 : length])
    free(heap);
    meet();
    /* The same sizes in another order: two variables change places. */
    if (me == 0) {
#pragma omp target enter data map(to : first)
#pragma omp target enter data map(to : second)
    } else {
#pragma omp target enter data map(to : second)
#pragma omp target enter data map(to : first)
    }
    meet();
    if (me == 0) {
        FAILS(ompx_target_put(next, first, 0, data, host, 8), OMPX_ERR_MISMATCH, "static data at");
        FAILS(ompx_target_put(next, first, 0, data, host, 8), OMPX_ERR_MISMATCH, "static data at");
    }
    meet();
#pragma omp target exit data map(release : first)
#pragma omp target exit data map(release : second)
    meet();
}

/* What was known of the other rank's memory is void once that has changed. */
static void stale_knowledge(void) {
    int64_t const sent = 42;
#pragma omp target enter data map(to : first)
    meet();
    if (me == 0) {
        for (int i = 0; i < 3; ++i) {
            CHECK(ompx_target_put(1, first, 0, &sent, host, sizeof(sent)) == 0);
        }
    }
    meet();
    if (me == 1) {
#pragma omp target exit data map(release : first)
        memset(untouched, 7, sizeof(untouched));
#pragma omp target enter data map(to : untouched)
    }
    meet();
    if (me == 0) {
        FAILS(ompx_target_put(1, first, 0, &sent, host, sizeof(sent)), OMPX_ERR_MISMATCH,
              "static data at");
    }
    meet();
    if (me == 1) {
#pragma omp target exit data map(from : untouched)
        for (int i = 0; i < BYTES; ++i) {
            CHECK(untouched[i] == 7);
        }
#pragma omp target enter data map(to : first)
    }
    meet();
    if (me == 0) {
        CHECK(ompx_target_put(1, first, 0, &sent, host, sizeof(sent)) == 0);
    }
    meet();
#pragma omp target exit data map(release : first)
    meet();
    /* And of this rank's own. */
    int64_t *mine = ompx_target_alloc(64, 0, ompx_local_mem_alloc);
    CHECK(ompx_target_put(me, mine, 0, &sent, host, sizeof(sent)) == 0);
    CHECK(ompx_target_put(me, mine, 0, &sent, host, sizeof(sent)) == 0);
    CHECK(ompx_target_free(mine, 0) == 0);
    FAILS(ompx_target_put(me, mine, 0, &sent, host, sizeof(sent)), OMPX_ERR_ADDRESS,
          "no allocation");
    meet();
}

/* OpenMP's free does not know of the other ranks: nothing is freed, and the heaps stay alike. */
static void freed_by_the_wrong_call(void) {
    char *symmetric = ompx_target_alloc(256, 0, ompx_symmetric_mem_alloc);
    CHECK(symmetric != NULL);
    meet();
    if (me == 0) {
        omp_target_free(symmetric, 0);
    }
    meet();
    char *after = ompx_target_alloc(256, 0, ompx_symmetric_mem_alloc);
    CHECK(after == symmetric + 256);
    int64_t const sent = me;
    int64_t seen = -1;
    CHECK(ompx_target_put(next, symmetric, 0, &sent, host, sizeof(sent)) == 0);
    meet();
    CHECK(ompx_target_get(&seen, host, me, symmetric, 0, sizeof(seen)) == 0);
    CHECK(seen == (me + ranks - 1) % ranks);
    meet();
    CHECK(ompx_target_free(after, 0) == 0);
    CHECK(ompx_target_free(symmetric, 0) == 0);
    /* With the number of another device it is still the same memory. */
    omp_target_free(omp_target_alloc(64, 0), omp_get_num_devices() > 1 ? 1 : 0);
    void *openmps = omp_target_alloc(64, 0);
    FAILS(ompx_target_free(openmps, 0), OMPX_ERR_ADDRESS, "OpenMP's own");
    omp_target_free(openmps, 0);
}

/* More than the segment holds: OpenMP goes on, other ranks cannot reach it. */
static void out_of_segment(void) {
    size_t const nbytes = (size_t)200 << 20;
    char *large = malloc(nbytes);
    large[nbytes - 1] = 1;
    int seen = 0;
#pragma omp target enter data map(to : large[0 : nbytes])
#pragma omp target map(tofrom : seen) map(to : large[0 : nbytes])
    seen = large[nbytes - 1];
    CHECK(seen == 1);
    meet();
    FAILS(ompx_target_put(next, large, 0, &seen, host, sizeof(seen)), OMPX_ERR_ADDRESS,
          "not in its segment");
    /* Within the rank it is memory like any other. */
    char back = 0;
    CHECK(ompx_target_get(&back, host, me, large + nbytes - 1, 0, 1) == 0);
    CHECK(back == 1);
    meet();
#pragma omp target exit data map(release : large[0 : nbytes])
    free(large);
    CHECK(ompx_target_alloc(nbytes, 0, ompx_symmetric_mem_alloc) == NULL);
    CHECK(strstr(ompx_last_error(), "DIOMP_DEVICE_SEGMENT_SIZE") != NULL);
    /* One rank alone has no room: all fail. */
    CHECK(ompx_target_alloc(me == 0 ? nbytes : 64, 0, ompx_asymmetric_mem_alloc) == NULL);
    CHECK(strstr(ompx_last_error(), me == 0 ? "no space" : "rank 0 has no space") != NULL);
    CHECK(ompx_target_alloc(me == 0 ? 64 : 128, 0, ompx_symmetric_mem_alloc) == NULL);
    CHECK(strstr(ompx_last_error(), "ranks disagree") != NULL);
}

int main(void) {
    me = ompx_rank_num();
    ranks = ompx_num_ranks();
    next = (me + 1) % ranks;
    host = omp_get_initial_device();
    CHECK(ranks >= 2);
    arguments();
    ranges();
    disagreements();
    stale_knowledge();
    freed_by_the_wrong_call();
    out_of_segment();
    return 0;
}
