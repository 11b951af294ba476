/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Calls inside target regions whose remote side a GPU cannot load and store: global host memory,
 * and with DIOMP_DEVICE_CALLS=ring also the memory of other ranks' GPUs. On host devices, and on
 * GPUs in scripts/gpu-check.sh. Regions wait for none of another rank. Runs with
 * DIOMP_ERRORS=return. */
#include "offload/on_gpu.h"
#include "support/check.h"

#include <omp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 1 << 18, THREADS = 64, TEAMS = 4 };

static int me, ranks, next, previous, on_gpu;
static unsigned char *source, *target; /* of the default device, BYTES each */
static unsigned char *shared;          /* host memory, BYTES */
static uint64_t *words;                /* host memory, 64 of them */

static void meet(void) {
    CHECK(ompx_fence() == 0);
    CHECK(ompx_barrier() == 0);
}

static unsigned char byte_of(int rank, size_t i) {
    return (unsigned char)(rank * 37 + (int)(i % 251) + 1);
}

static void fill(void) {
    unsigned char *const from = source;
    unsigned char *const to = target;
    int const rank = me;
#pragma omp target teams distribute parallel for is_device_ptr(from, to)
    for (int i = 0; i < BYTES; ++i) {
        from[i] = (unsigned char)(rank * 37 + i % 251 + 1);
        to[i] = 0;
    }
    memset(shared, 0, BYTES);
    memset(words, 0, 64 * sizeof(*words));
    meet();
}

/* The first bytes are those of `rank`. Returns the byte after them. */
static unsigned char holds(const unsigned char *at, int on_device, int rank, size_t nbytes) {
    unsigned char *copy = malloc(nbytes + 1);
    CHECK(omp_target_memcpy(copy, at, nbytes + 1, 0, 0, omp_get_initial_device(),
                            on_device ? omp_get_default_device() : omp_get_initial_device()) == 0);
    for (size_t i = 0; i < nbytes; ++i) {
        CHECK(copy[i] == byte_of(rank, i));
    }
    unsigned char const after = copy[nbytes];
    free(copy);
    return after;
}

static const size_t sizes[] = {0, 1, 8, 24, 40, 41, 48, 49, 300, 4096, 100003};
enum { NUM_SIZES = sizeof(sizes) / sizeof(sizes[0]) };

/* To and from the next rank's memory of either kind. */
static void transfers(unsigned char *there, int on_device) {
    for (int n = 0; n < NUM_SIZES; ++n) {
        size_t const nbytes = sizes[n];
        unsigned char *const in = source;
        unsigned char *const out = source + BYTES / 2;
        int const right = next;
        int status[5] = {1, 1, 1, 1, 1};
        fill();
#pragma omp target is_device_ptr(there, in) map(from : status)
        {
            ompx_event_t event = NULL;
            int done = 0;
            status[0] = ompx_put(right, there, in, nbytes);
            status[1] = ompx_put_nb(right, there, in, nbytes, &event);
            status[2] = ompx_event_test(&event, &done);
            status[3] = ompx_event_wait(&event);
            status[4] = ompx_fence();
        }
        for (int i = 0; i < 5; ++i) {
            CHECK(status[i] == 0);
        }
        meet();
        CHECK(holds(there, on_device, previous, nbytes) == 0);
        meet();
#pragma omp target is_device_ptr(there, out) map(from : status)
        {
            status[0] = ompx_get(out, right, there, nbytes);
        }
        CHECK(status[0] == 0);
        CHECK(holds(out, 1, me, nbytes) == byte_of(me, BYTES / 2 + nbytes));
        meet();
    }
}

/* What the region itself has, in several requests. */
static void variables_of_the_region(unsigned char *there) {
    enum { COUNT = 100 };
    int const right = next, self = me;
    int status[2] = {1, 1}, wrong = 0;
    fill();
#pragma omp target is_device_ptr(there) map(from : status)
    {
        unsigned char own[COUNT];
        for (int i = 0; i < COUNT; ++i) {
            own[i] = (unsigned char)(self + i);
        }
        status[0] = ompx_put(right, there, own, COUNT);
        own[COUNT - 1] = 0; /* it was read */
        status[1] = ompx_fence();
    }
    CHECK(status[0] == 0 && status[1] == 0);
    meet();
#pragma omp target is_device_ptr(there) map(from : status) map(tofrom : wrong)
    {
        unsigned char own[COUNT];
        status[0] = ompx_get(own, right, there, COUNT);
        for (int i = 0; i < COUNT; ++i) {
            wrong += own[i] != (unsigned char)(self + i);
        }
    }
    CHECK(status[0] == 0 && wrong == 0);
    meet();
}

static void by_teams(void) {
    for (int n = 0; n < NUM_SIZES; ++n) {
        size_t const nbytes = sizes[n];
        unsigned char *const there = shared;
        unsigned char *const in = source;
        uint64_t *const signal = words;
        int const right = next;
        int wrong = 0;
        fill();
#pragma omp target teams num_teams(1) thread_limit(THREADS) is_device_ptr(there, in, signal)       \
    map(tofrom : wrong)
#pragma omp parallel num_threads(THREADS) reduction(+ : wrong)
        {
            wrong += ompx_team_put(right, there, in, nbytes) != 0;
            wrong +=
                ompx_team_put_signal(right, there, in, nbytes, signal, 3, OMPX_SIGNAL_ADD) != 0;
            /* All threads get the status of the one that asks. */
            wrong += ompx_team_put(-1, there, in, nbytes) != OMPX_ERR_RANK;
        }
        CHECK(wrong == 0);
        /* On host devices another thread may have made the call. */
        CHECK(!on_gpu || strstr(ompx_last_error(), "outside the world") != NULL);
        meet();
        CHECK(holds(there, 0, previous, nbytes) == 0);
        CHECK(*signal == 3);
        meet();
    }
}

/* Signals in host memory, and the host that waits for them. */
static void signals(void) {
    unsigned char *const there = shared;
    unsigned char *const in = source;
    uint64_t *const signal = words;
    int const right = next;
    for (int n = 0; n < NUM_SIZES; ++n) {
        size_t const nbytes = sizes[n];
        int status[3] = {1, 1, 1};
        fill();
#pragma omp target is_device_ptr(there, in, signal) map(from : status)
        {
            status[0] = ompx_put_signal(right, there, in, nbytes, &signal[1], 77, OMPX_SIGNAL_SET);
            status[1] = ompx_put_signal(right, NULL, NULL, 0, &signal[2], 2, OMPX_SIGNAL_ADD);
            status[2] = ompx_put_signal(right, NULL, NULL, 0, &signal[2], 3, OMPX_SIGNAL_ADD);
        }
        CHECK(status[0] == 0 && status[1] == 0 && status[2] == 0);
        CHECK(ompx_signal_wait(&signal[1], OMPX_CMP_EQ, 77) == 0);
        CHECK(holds(there, 0, previous, nbytes) == 0);
        CHECK(ompx_signal_wait(&signal[2], OMPX_CMP_EQ, 5) == 0);
        meet();
    }
}

/* A word of this rank's memory, on the device or on the host. */
static uint64_t read_word(const uint64_t *at, int index, int on_device) {
    uint64_t word = 0;
    CHECK(omp_target_memcpy(&word, at, sizeof(word), 0, (size_t)index * sizeof(word),
                            omp_get_initial_device(),
                            on_device ? omp_get_default_device() : omp_get_initial_device()) == 0);
    return word;
}

/* Updates of the words of rank 0 by all ranks, of the next one's by signals. A GPU's own threads
 * update words of its memory meanwhile. */
static void atomics(uint64_t *at, int on_device) {
    enum { EACH = 10 };
    int const right = next;
    int wrong = 0;
    fill();
#pragma omp target teams num_teams(TEAMS) thread_limit(THREADS) is_device_ptr(at)                  \
    map(tofrom : wrong) reduction(+ : wrong)
#pragma omp parallel num_threads(THREADS) reduction(+ : wrong)
    {
        uint64_t last = 0;
        for (int i = 0; i < EACH; ++i) {
            uint64_t one = 1, old = 0;
            double half = 0.5;
            wrong += ompx_atomic_add(0, &at[0], &one, OMPX_UINT64) != 0;
            wrong += ompx_atomic_add(0, &at[8], &half, OMPX_DOUBLE) != 0;
            wrong += ompx_atomic_fetch_add(0, &at[16], &one, &old, OMPX_UINT64) != 0;
            wrong += i > 0 && old <= last;
            last = old;
            wrong += ompx_put_signal(right, NULL, NULL, 0, &at[24], 1, OMPX_SIGNAL_ADD) != 0;
        }
        wrong += ompx_fence() != 0;
    }
    CHECK(wrong == 0);
    meet();
    /* The region may have fewer threads than it asks for. */
    uint64_t const signals_here = read_word(at, 24, on_device);
    CHECK(signals_here != 0 && signals_here % EACH == 0);
    if (me == 0) {
        uint64_t const sum = read_word(at, 0, on_device), bits = read_word(at, 8, on_device);
        double halves;
        memcpy(&halves, &bits, sizeof(halves));
        CHECK(sum != 0 && sum % EACH == 0 && read_word(at, 16, on_device) == sum);
        CHECK(halves == 0.5 * (double)sum);
    }
    meet();
    int64_t seen = -1;
    int status = 1;
    if (me == ranks - 1) {
#pragma omp target is_device_ptr(at) map(from : status, seen)
        {
            int64_t expected = 0, desired = -7, old = 1;
            status = ompx_atomic_compare_swap(0, &at[30], &expected, &desired, &old, OMPX_INT64);
            seen = old;
        }
        CHECK(status == 0 && seen == 0);
    }
    meet();
    CHECK(me != 0 || (int64_t)read_word(at, 30, on_device) == -7);
    meet();
}

int main(void) {
    int const device = omp_get_default_device();
    me = ompx_rank_num();
    ranks = ompx_num_ranks();
    next = (me + 1) % ranks;
    previous = (me + ranks - 1) % ranks;
    source = ompx_target_alloc(BYTES, device, ompx_symmetric_mem_alloc);
    target = ompx_target_alloc(BYTES, device, ompx_symmetric_mem_alloc);
    shared = ompx_alloc(BYTES, 0, OMPX_MEM_SYMMETRIC);
    words = ompx_alloc(64 * sizeof(*words), 0, OMPX_MEM_SYMMETRIC);
    CHECK(source != NULL && target != NULL && shared != NULL && words != NULL);
    on_gpu = regions_run_on_gpu();
    /* Host memory is in no session of a GPU. */
    if (!on_gpu || getenv("DIOMP_REMOTE_DEVICES") == NULL) {
        transfers(shared, 0);
        variables_of_the_region(shared);
        by_teams();
        signals();
        atomics(words, 0);
    }
    transfers(target, 1);
    variables_of_the_region(target);
    atomics((uint64_t *)target, 1);
    if (me == 0) {
        printf("requests of %s: ok\n", on_gpu ? "a GPU" : "host devices");
    }
    CHECK(ompx_target_free(source, device) == 0 && ompx_target_free(target, device) == 0);
    CHECK(ompx_free(shared) == 0 && ompx_free(words) == 0);
    return 0;
}
