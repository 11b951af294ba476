/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Data with a signal to the right neighbour, an acknowledgement back, per thread. */
#include "stress.h"

#include <stdlib.h>
#include <string.h>

typedef struct counters {
    uint64_t arrived, acknowledged;
} counters;

static counters *signals;   /* symmetric, [thread] */
static unsigned char *slot; /* symmetric, [thread][area_bytes] */
static struct {
    uint64_t round;
    unsigned char *data;
} workers[MAX_THREADS];

void signals_begin(void) {
    size_t const nbytes = (size_t)job.threads * job.area_bytes;
    signals = need(ompx_alloc((size_t)job.threads * sizeof *signals, 0, OMPX_MEM_SYMMETRIC));
    memset(signals, 0, (size_t)job.threads * sizeof *signals);
    slot = need(ompx_alloc(nbytes, 0, OMPX_MEM_SYMMETRIC));
    for (int t = 0; t < job.threads; ++t) {
        workers[t].data = need(malloc(job.area_bytes));
    }
}

/* Fills `data` with what `rank` sends in a round; its size. */
static size_t message_of(int rank, int thread, uint64_t round, unsigned char *data) {
    random_source common = {
        mix(job.seed ^ (round << 20) ^ ((uint64_t)thread << 8) ^ (uint64_t)rank)};
    size_t const nbytes = draw_size(&common, job.area_bytes);
    fill(data, nbytes, draw(&common));
    return nbytes;
}

void signals_work(random_source *from, int rounds) {
    int const t = omp_get_thread_num();
    int const right = (job.me + 1) % job.ranks;
    int const left = (job.me + job.ranks - 1) % job.ranks;
    unsigned char *const data = workers[t].data;
    unsigned char *const here = slot + (size_t)t * job.area_bytes;
    for (int i = 0; i < rounds; ++i) {
        uint64_t const round = ++workers[t].round;
        size_t nbytes = message_of(job.me, t, round, data);
        int const adds = (int)draw_below(from, 2);
        SUCCEEDS(ompx_put_signal(right, here, data, nbytes, &signals[t].arrived, adds ? 1 : round,
                                 adds ? OMPX_SIGNAL_ADD : OMPX_SIGNAL_SET));
        SUCCEEDS(ompx_signal_wait(&signals[t].arrived, OMPX_CMP_GE, round));
        nbytes = message_of(left, t, round, data);
        REQUIRE(memcmp(data, here, nbytes) == 0,
                "%zu bytes of round %llu are not there although their signal is", nbytes,
                (unsigned long long)round);
        SUCCEEDS(
            ompx_put_signal(left, NULL, NULL, 0, &signals[t].acknowledged, 1, OMPX_SIGNAL_ADD));
        SUCCEEDS(ompx_signal_wait(&signals[t].acknowledged, OMPX_CMP_GE, round));
    }
}
