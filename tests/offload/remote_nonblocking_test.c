/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Non-blocking transfers with memory of remote devices. Each rank has a remote device, a processor,
 * and no other; DIOMP_ERRORS=return. Argument: the seed of the random transfers. */
#include "support/check.h"

#include <omp.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { SLOTS = 400, SLOT = 1024, LARGE = 3 << 20 };

static int me, ranks, right, left, host;
static unsigned seed;

static unsigned next_random(void) {
    seed = seed * 1103515245u + 12345u;
    return seed >> 8;
}

/* The bytes of a slot, which its sender chooses. */
static unsigned char byte_of(int sender, int round, int slot, size_t i) {
    return (unsigned char)(sender * 89 + round * 31 + slot * 7 + (int)(i % 251));
}

static void fill_on_device(unsigned char *data, int sender, int round) {
#pragma omp target is_device_ptr(data)
    for (int slot = 0; slot < SLOTS; ++slot) {
        for (size_t i = 0; i < SLOT; ++i) {
            data[(size_t)slot * SLOT + i] =
                (unsigned char)(sender * 89 + round * 31 + slot * 7 + (int)(i % 251));
        }
    }
}

/* Each slot is transferred at once with the others, by one of the kinds: device or host memory on
 * the own side, a put or a get, an event or the next fence. */
static void windows(int round) {
    size_t const nbytes = (size_t)SLOTS * SLOT;
    unsigned char *const from = ompx_target_alloc(nbytes, 0, ompx_symmetric_mem_alloc);
    unsigned char *const to = ompx_target_alloc(nbytes, 0, ompx_symmetric_mem_alloc);
    unsigned char *const fetched = ompx_target_alloc(nbytes, 0, ompx_symmetric_mem_alloc);
    unsigned char *const plain = malloc(nbytes), *const got = malloc(nbytes);
    int *const kinds = malloc(SLOTS * sizeof *kinds), *const sizes = malloc(SLOTS * sizeof *sizes);
    int *const theirs = malloc((size_t)ranks * SLOTS * sizeof *theirs);
    int *const their_sizes = malloc((size_t)ranks * SLOTS * sizeof *their_sizes);
    ompx_event_t *const events = calloc(SLOTS, sizeof(ompx_event_t));
    fill_on_device(from, me, round);
    for (int slot = 0; slot < SLOTS; ++slot) {
        for (size_t i = 0; i < SLOT; ++i) {
            plain[(size_t)slot * SLOT + i] = byte_of(me, round, slot, i);
        }
        kinds[slot] = (int)(next_random() % 8);
        sizes[slot] = 1 + (int)(next_random() % SLOT);
    }
    CHECK(ompx_allgather(theirs, kinds, SLOTS * sizeof *kinds, NULL) == 0);
    CHECK(ompx_allgather(their_sizes, sizes, SLOTS * sizeof *sizes, NULL) == 0);
    CHECK(ompx_barrier() == 0);
    for (int slot = 0; slot < SLOTS; ++slot) {
        size_t const at = (size_t)slot * SLOT, size = (size_t)sizes[slot];
        int const by_host = kinds[slot] & 1, is_get = kinds[slot] & 2;
        ompx_event_t *const event = (kinds[slot] & 4) != 0 ? &events[slot] : NULL;
        if (is_get) {
            CHECK(ompx_target_get_nb(by_host ? got + at : fetched + at, by_host ? host : 0, right,
                                     from + at, 0, size, event) == 0);
        } else {
            CHECK(ompx_target_put_nb(right, to + at, 0, by_host ? plain + at : from + at,
                                     by_host ? host : 0, size, event) == 0);
        }
    }
    for (int slot = 0; slot < SLOTS; ++slot) {
        CHECK(ompx_event_wait(&events[slot]) == 0);
    }
    CHECK(ompx_fence() == 0 && ompx_barrier() == 0);
    unsigned char *const arrived = malloc(nbytes), *const by_device = malloc(nbytes);
    CHECK(ompx_target_get(arrived, host, me, to, 0, nbytes) == 0);
    CHECK(ompx_target_get(by_device, host, me, fetched, 0, nbytes) == 0);
    for (int slot = 0; slot < SLOTS; ++slot) {
        size_t const at = (size_t)slot * SLOT;
        for (size_t i = 0; i < (size_t)sizes[slot] && (kinds[slot] & 2) != 0; ++i) {
            unsigned char const *const data = (kinds[slot] & 1) != 0 ? got : by_device;
            CHECK(data[at + i] == byte_of(right, round, slot, i));
        }
        int const from_left = left * SLOTS + slot;
        for (size_t i = 0; i < (size_t)their_sizes[from_left] && !(theirs[from_left] & 2); ++i) {
            CHECK(arrived[at + i] == byte_of(left, round, slot, i));
        }
    }
    CHECK(ompx_barrier() == 0);
    CHECK(ompx_target_free(from, 0) == 0 && ompx_target_free(to, 0) == 0);
    CHECK(ompx_target_free(fetched, 0) == 0);
    free(plain);
    free(got);
    free(by_device);
    free(kinds);
    free(sizes);
    free(theirs);
    free(their_sizes);
    free(events);
    free(arrived);
}

/* Mapped memory that is unmapped, and mapped again for other data, right after its transfer. */
static void unmapped_memory(void) {
    unsigned char *const to = ompx_target_alloc(LARGE, 0, ompx_symmetric_mem_alloc);
    unsigned char *const plain = malloc(LARGE);
    for (int round = 0; round < 6; ++round) {
        unsigned char *const field = malloc(LARGE);
        memset(field, 10 + round + me, LARGE);
        CHECK(ompx_barrier() == 0);
#pragma omp target enter data map(to : field[0 : LARGE])
        CHECK(ompx_target_put_nb(right, to, 0, field, 0, LARGE, NULL) == 0);
#pragma omp target exit data map(delete : field[0 : LARGE])
        memset(field, 77, LARGE);
#pragma omp target map(tofrom : field[0 : LARGE])
        for (int i = 0; i < LARGE; ++i) {
            field[i] = (unsigned char)(field[i] + 1);
        }
        CHECK(field[0] == 78 && field[LARGE - 1] == 78);
        CHECK(ompx_fence() == 0 && ompx_barrier() == 0);
        CHECK(ompx_target_get(plain, host, me, to, 0, LARGE) == 0);
        CHECK(plain[0] == 10 + round + left && memcmp(plain, plain + 1, LARGE - 1) == 0);
        free(field);
    }
    CHECK(ompx_barrier() == 0);
    CHECK(ompx_target_free(to, 0) == 0);
    free(plain);
}

/* Regions that OpenMP treats as complete are, for a transfer that starts after them. */
static void after_regions(void) {
    enum { FEW = 64 };
    long *const words = ompx_target_alloc(FEW * sizeof *words, 0, ompx_symmetric_mem_alloc);
    long *const theirs = ompx_target_alloc(FEW * sizeof *theirs, 0, ompx_symmetric_mem_alloc);
    long got[FEW];
    for (long round = 0; round < 50; ++round) {
#pragma omp target nowait is_device_ptr(words) firstprivate(round)
        for (int i = 0; i < FEW; ++i) {
            words[i] = 1000 * round + i;
        }
#pragma omp taskwait
        CHECK(ompx_target_put_nb(right, theirs, 0, words, 0, sizeof got, NULL) == 0);
        CHECK(ompx_fence() == 0 && ompx_barrier() == 0);
        CHECK(ompx_target_get(got, host, me, theirs, 0, sizeof got) == 0);
        CHECK(got[0] == 1000 * round && got[FEW - 1] == 1000 * round + FEW - 1);
        CHECK(ompx_barrier() == 0);
    }
    CHECK(ompx_target_free(words, 0) == 0 && ompx_target_free(theirs, 0) == 0);
}

/* The call returns while the session of the own device is stopped. */
static void without_waiting(void) {
    unsigned char *const block = ompx_target_alloc(LARGE, 0, ompx_symmetric_mem_alloc);
    unsigned char *const there = ompx_target_alloc(LARGE, 0, ompx_symmetric_mem_alloc);
    int pid = 0;
#pragma omp target is_device_ptr(block) map(from : pid)
    {
        pid = getpid();
        for (int i = 0; i < LARGE; ++i) {
            block[i] = (unsigned char)i;
        }
    }
    CHECK(ompx_barrier() == 0);
    for (int rank = 0; rank < ranks; ++rank) { /* one at a time: the others' transfers need it */
        if (rank == me) {
            ompx_event_t event = NULL;
            int is_done = 1;
            CHECK(pid > 0 && kill(pid, SIGSTOP) == 0);
            CHECK(ompx_target_put_nb(right, there, 0, block, 0, LARGE, &event) == 0);
            usleep(20000);
            CHECK(event != NULL && ompx_event_test(&event, &is_done) == 0 && !is_done);
            CHECK(kill(pid, SIGCONT) == 0);
            CHECK(ompx_event_wait(&event) == 0 && event == NULL);
        }
        CHECK(ompx_barrier() == 0);
    }
    unsigned char *const plain = malloc(LARGE);
    CHECK(ompx_target_get(plain, host, me, there, 0, LARGE) == 0);
    for (int i = 0; i < LARGE; ++i) {
        CHECK(plain[i] == (unsigned char)i);
    }
    free(plain);
    CHECK(ompx_target_free(block, 0) == 0 && ompx_target_free(there, 0) == 0);
}

/* While the session of the target is stopped: regions of the own device, their maps, and frees of
 * other memory, do not wait for the transfer. The freed memory that it uses is not used again. */
static void beside_others(void) {
    enum { OTHER = 4096 };
    unsigned char *const there = ompx_target_alloc(LARGE, 0, ompx_symmetric_mem_alloc);
    unsigned char *const block = ompx_target_alloc(LARGE, 0, ompx_local_mem_alloc);
    unsigned char *const other = ompx_target_alloc(OTHER, 0, ompx_local_mem_alloc);
    unsigned char *const plain = malloc(LARGE);
    int pid = 0, pids[16];
#pragma omp target is_device_ptr(block) map(from : pid)
    {
        pid = getpid();
        for (int i = 0; i < LARGE; ++i) {
            block[i] = 11;
        }
    }
    CHECK(ranks <= 16 && ompx_allgather(pids, &pid, sizeof pid, NULL) == 0);
    for (int rank = 0; rank < ranks; ++rank) { /* one at a time */
        if (rank == me && right != me) {
            ompx_event_t event = NULL;
            int is_done = 0, number = 1;
            CHECK(kill(pids[right], SIGSTOP) == 0);
            CHECK(ompx_target_put_nb(right, there, 0, block, 0, LARGE, &event) == 0);
#pragma omp target map(tofrom : number)
            ++number;
            CHECK(number == 2);
            CHECK(ompx_target_free(other, 0) == 0);
            /* Sessions that share memory copy by themselves. */
            CHECK(event == NULL || ompx_event_test(&event, &is_done) == 0);
            char const *const size = getenv("DIOMP_NODE_SIZE");
            CHECK(size == NULL || strcmp(size, "1") != 0 || !is_done);
            CHECK(kill(pids[right], SIGCONT) == 0);
            CHECK(ompx_target_free(block, 0) == 0); /* waits */
            unsigned char *const next = ompx_target_alloc(LARGE, 0, ompx_local_mem_alloc);
#pragma omp target is_device_ptr(next)
            for (int i = 0; i < LARGE; ++i) {
                next[i] = 22;
            }
            CHECK(ompx_event_wait(&event) == 0);
            CHECK(ompx_target_get(plain, host, right, there, 0, LARGE) == 0);
            CHECK(plain[0] == 11 && memcmp(plain, plain + 1, LARGE - 1) == 0);
            CHECK(ompx_target_free(next, 0) == 0);
        }
        CHECK(ompx_barrier() == 0);
    }
    free(plain);
    CHECK(ompx_target_free(there, 0) == 0);
}

/* Several threads, and detach events. */
static void threads_and_tasks(void) {
    enum { THREADS = 4, CALLS = 100 };
    long *const words = ompx_target_alloc(THREADS * sizeof *words, 0, ompx_symmetric_mem_alloc);
    CHECK(words != NULL && ompx_barrier() == 0);
#pragma omp parallel num_threads(THREADS)
    {
        int const thread = omp_get_thread_num();
        for (long i = 1; i <= CALLS; ++i) {
            long const sent = 1000 * me + i, *const from = &sent;
            CHECK(ompx_target_put_nb(right, &words[thread], 0, from, host, sizeof sent, NULL) == 0);
            CHECK(ompx_fence() == 0);
        }
    }
    CHECK(ompx_barrier() == 0);
    long got[THREADS];
    CHECK(ompx_target_get(got, host, me, words, 0, sizeof got) == 0);
    int const num_threads = omp_get_max_threads() < THREADS ? 1 : THREADS;
    for (int thread = 0; thread < num_threads; ++thread) {
        CHECK(got[thread] == 1000 * left + CALLS);
    }
    long value = -1;
#pragma omp parallel num_threads(2)
#pragma omp single
    {
        omp_event_handle_t arrived;
#pragma omp task depend(out : value) detach(arrived)
        CHECK(ompx_target_get_detach(&value, host, right, words, 0, sizeof value, arrived) == 0);
#pragma omp task depend(in : value)
        CHECK(value == 1000 * me + CALLS);
    }
    CHECK(ompx_barrier() == 0);
    CHECK(ompx_target_free(words, 0) == 0);
}

int main(int argc, char **argv) {
    seed = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
    me = ompx_rank_num();
    seed += 77u * (unsigned)me;
    ranks = ompx_num_ranks();
    right = (me + 1) % ranks;
    left = (me + ranks - 1) % ranks;
    host = omp_get_initial_device();
    CHECK(omp_get_num_devices() == 1);
    for (int round = 0; round < 3; ++round) {
        windows(round);
    }
    unmapped_memory();
    after_regions();
    without_waiting();
    beside_others();
    threads_and_tasks();
    CHECK(ompx_barrier() == 0);
    if (me == 0) {
        puts("remote nonblocking: ok");
    }
    return 0;
}
