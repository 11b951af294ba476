/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * LLVM's own plugin for CUDA, on the driver or its stand-in: its devices have segments, and ranks
 * reach each other's memory there, also where each has a device with a number of its own. No
 * region runs. */
#include "support/check.h"

#include <omp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH = 5000 };

#pragma omp begin declare target
int32_t in_the_image; /* the plugin starts for an image */
#pragma omp end declare target

/* Private memory, at addresses and of sizes that no chunk has, from several threads at once. Bytes
 * around it stay as they are. */
enum { PRIVATE_BYTES = (41 << 20) + 12345, EDGE = 7 };

static unsigned char byte_of(size_t at, int round) {
    return (unsigned char)(at * 131 + at / 4099 + 17 * (size_t)round);
}

static void copy_private(int device, int round) {
    int const host = omp_get_initial_device();
    unsigned char *const sent = malloc(PRIVATE_BYTES + 2 * EDGE);
    unsigned char *const got = malloc(PRIVATE_BYTES + 2 * EDGE);
    void *const there = omp_target_alloc(PRIVATE_BYTES, device);
    CHECK(sent != NULL && got != NULL && there != NULL);
    for (size_t i = 0; i < PRIVATE_BYTES; ++i) {
        sent[EDGE + i] = byte_of(i, round);
    }
    memset(got, 0x5a, PRIVATE_BYTES + 2 * EDGE);
    CHECK(omp_target_memcpy(there, sent, PRIVATE_BYTES, 0, EDGE, device, host) == 0);
    /* It has been read. */
    memset(sent, 0, PRIVATE_BYTES);
    CHECK(omp_target_memcpy(got, there, PRIVATE_BYTES, EDGE, 0, host, device) == 0);
    for (size_t i = 0; i < PRIVATE_BYTES; ++i) {
        CHECK(got[EDGE + i] == byte_of(i, round));
    }
    for (size_t i = 0; i < EDGE; ++i) {
        CHECK(got[i] == 0x5a && got[EDGE + PRIVATE_BYTES + i] == 0x5a);
    }
    omp_target_free(there, device);
    free(sent);
    free(got);
}

int main(void) {
    int const me = ompx_rank_num();
    int const ranks = ompx_num_ranks();
    int const host = omp_get_initial_device();
    int32_t sent[LENGTH];
    int32_t got[LENGTH];
    CHECK(omp_get_num_devices() > 0);
    /* Each rank has a device of its own, with its own number, and uses the others' as well. */
    int const device = ompx_rank_device(0);
    for (int each = 0; each < omp_get_num_devices(); ++each) {
        void *const used = omp_target_alloc(1000, each);
        CHECK(used != NULL);
        omp_target_free(used, each);
    }
    int32_t *const memory = ompx_target_alloc(sizeof sent, device, ompx_symmetric_mem_alloc);
    CHECK(memory != NULL);
    for (int i = 0; i < LENGTH; ++i) {
        sent[i] = 10000 * me + i;
    }
    CHECK(ompx_barrier() == 0);
    CHECK(ompx_target_put((me + 1) % ranks, memory, device, sent, host, sizeof sent) == 0);
    CHECK(ompx_barrier() == 0);
    CHECK(omp_target_memcpy(got, memory, sizeof got, 0, 0, host, device) == 0);
    int const from = (me + ranks - 1) % ranks;
    for (int i = 0; i < LENGTH; ++i) {
        CHECK(got[i] == 10000 * from + i);
    }
    CHECK(ompx_target_get(got, host, (me + 1) % ranks, memory, device, sizeof got) == 0);
    for (int i = 0; i < LENGTH; ++i) {
        CHECK(got[i] == sent[i]);
    }
    CHECK(ompx_barrier() == 0);
    CHECK(ompx_target_free(memory, device) == 0);
    /* Ranks that give one number mean one device. */
    void *const first = ompx_target_alloc(100, 0, ompx_symmetric_mem_alloc);
    CHECK(first != NULL && ompx_target_free(first, 0) == 0);
    copy_private(device, 0);
    if (getenv("ALL_AT_ONCE") != NULL) {
#pragma omp parallel for num_threads(3)
        for (int thread = 0; thread < 3; ++thread) {
            copy_private(device, 1 + thread);
        }
    }
    copy_private(device, 7);
    printf("plugin for CUDA: ok\n");
    return 0;
}
