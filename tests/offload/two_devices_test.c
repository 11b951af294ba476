/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * A rank with --devices-per-rank 2 drives both its devices, a thread each: mapping, target regions,
 * and transfers from its device i to device j of the next rank. Runs with DIOMP_ERRORS=return. */
#include "support/check.h"

#include <omp.h>
#include <stdint.h>
#include <stdlib.h>

enum { DEVICES = 2, LENGTH = 4000, ROUNDS = 10 };

static int me, ranks, next, previous;
static int devices[DEVICES];
/* [index of the device] */
static int64_t *outbox[DEVICES], *inbox[DEVICES], *sums[DEVICES];

static int64_t value(int rank, int index, int round, int i) {
    return (((int64_t)rank * DEVICES + index) * ROUNDS + round) * LENGTH + i;
}

static void meet(void) {
#pragma omp barrier
#pragma omp single
    {
        CHECK(ompx_fence() == 0);
        CHECK(ompx_barrier() == 0);
    }
}

/* What thread `index` does with its device, in step with the other one. */
static void drive(int index) {
    int const device = devices[index];
    int const other = DEVICES - 1 - index;
    int64_t *const out = outbox[index];
    int64_t *const in = inbox[index];
#pragma omp target enter data device(device) map(alloc : out[0 : LENGTH], in[0 : LENGTH])
    meet();
    for (int round = 0; round < ROUNDS; ++round) {
        int const rank = me;
#pragma omp target device(device) map(to : out[0 : LENGTH])
        for (int i = 0; i < LENGTH; ++i) {
            out[i] = value(rank, index, round, i);
        }
        /* The next rank's other device. Its numbers are ours: host devices. */
        CHECK(ompx_target_put(next, inbox[other], devices[other], out, device,
                              sizeof(int64_t) * LENGTH) == 0);
        meet();
        int64_t wrong = 0;
        int const sender = previous;
#pragma omp target device(device) map(to : in[0 : LENGTH]) map(tofrom : wrong)
        for (int i = 0; i < LENGTH; ++i) {
            wrong += in[i] != value(sender, other, round, i);
        }
        CHECK(wrong == 0);
        /* And back by a get, part by part, from the device of the same index. */
        int64_t part[LENGTH / 4];
        int const begin = round % 4 * (LENGTH / 4);
        CHECK(ompx_target_get(part, omp_get_initial_device(), previous, out + begin, device,
                              sizeof(part)) == 0);
        for (int i = 0; i < LENGTH / 4; ++i) {
            CHECK(part[i] == value(previous, index, round, begin + i));
        }
        meet();
    }
#pragma omp target exit data device(device) map(release : out[0 : LENGTH], in[0 : LENGTH])
}

/* Both devices work at once on one sum: no region waits for the other device. */
static void both_at_once(void) {
    int64_t total = 0;
    for (int index = 0; index < DEVICES; ++index) {
        int64_t *const sum = sums[index];
        int const rank = me;
#pragma omp target device(devices[index]) nowait map(from : sum[0 : 1])
        {
            int64_t partial = 0;
            for (int i = 0; i < LENGTH; ++i) {
                partial += value(rank, index, 0, i);
            }
            sum[0] = partial;
        }
    }
#pragma omp taskwait
    for (int index = 0; index < DEVICES; ++index) {
        int64_t const first = value(me, index, 0, 0);
        CHECK(sums[index][0] == LENGTH * first + (int64_t)LENGTH * (LENGTH - 1) / 2);
        total += sums[index][0];
    }
    CHECK(total > 0);
}

int main(void) {
    me = ompx_rank_num();
    ranks = ompx_num_ranks();
    next = (me + 1) % ranks;
    previous = (me + ranks - 1) % ranks;
    CHECK(ompx_num_rank_devices() == DEVICES);
    CHECK(ompx_rank_device(DEVICES) == OMPX_ERR_ARG);
    CHECK(ompx_rank_device(-1) == OMPX_ERR_ARG);
    for (int index = 0; index < DEVICES; ++index) {
        devices[index] = ompx_rank_device(index);
        CHECK(devices[index] >= 0 && devices[index] < omp_get_num_devices());
        outbox[index] = malloc(sizeof(int64_t) * LENGTH);
        inbox[index] = malloc(sizeof(int64_t) * LENGTH);
        sums[index] = malloc(sizeof(int64_t));
    }
    CHECK(devices[0] != devices[1]);
    CHECK(omp_get_default_device() == devices[0]);
#pragma omp parallel num_threads(DEVICES)
    {
        CHECK(omp_get_num_threads() == DEVICES);
        CHECK(omp_get_default_device() == devices[0]);
        drive(omp_get_thread_num());
    }
    both_at_once();
    for (int index = 0; index < DEVICES; ++index) {
        free(outbox[index]);
        free(inbox[index]);
        free(sums[index]);
    }
    return 0;
}
