/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * A random program whose every byte is checked against a model. All ranks draw from one seed, so
 * that what they do together agrees, and from numbers of their own for the rest.
 *
 * Each thread of each rank is a worker. For transfers it owns an area in every rank's memory, of
 * every kind, that no other worker writes; its model of them is a copy that it changes with each
 * put and compares with each get (areas.c). What workers share has invariants instead: sums of
 * atomics (atomics.c), contents that only a lock's holder changes (locks.c), data that a signal
 * announces (signals.c), results of collectives that every member can compute (collectives.c).
 */
#ifndef DIOMP_TESTS_WHOLE_STRESS_H
#define DIOMP_TESTS_WHOLE_STRESS_H

#include <diomp.h>
#include <omp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { MAX_THREADS = 8 };

typedef struct stress_job {
    int me, ranks, threads;
    uint64_t seed;
    long phase;
    size_t area_bytes; /* of a worker's area in one rank's memory; the largest transfer */
} stress_job;
extern stress_job job;

#define REQUIRE(condition, ...)                                                                    \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "stress: rank %d, thread %d, seed %llu, phase %ld, %s:%d: ", job.me,   \
                    omp_get_thread_num(), (unsigned long long)job.seed, job.phase, __FILE__,       \
                    __LINE__);                                                                     \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fprintf(stderr, " [%s]\n", ompx_last_error());                                         \
            ompx_abort(77);                                                                        \
        }                                                                                          \
    } while (0)
#define SUCCEEDS(call) REQUIRE((call) == 0, "%s", #call)

/* ---- Random numbers (splitmix64: Steele, Lea, Flood 2014) */

typedef struct random_source {
    uint64_t state;
} random_source;

static inline uint64_t mix(uint64_t z) {
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
static inline uint64_t draw(random_source *from) { return mix(from->state += 0x9e3779b97f4a7c15u); }
static inline size_t draw_below(random_source *from, size_t limit) { return draw(from) % limit; }
/* 1 to `largest`, as often between 1 and 2 as between 64 and 128 Ki. */
size_t draw_size(random_source *from, size_t largest);
/* The bytes that belong to a number. */
void fill(void *to, size_t nbytes, uint64_t number);

/* ---- Parts of the program. begin() and end() are collective; work() is called by each worker. */

void *need(void *memory); /* ends the job if it is NULL */

void areas_begin(void);
void areas_work(random_source *from, int operations);
void areas_settle(void);    /* by each worker: everything that it started is complete */
void areas_check_all(void); /* by each worker, after settle and a barrier */
void areas_check_guards(void);
void areas_end(void);

void atomics_begin(void);
void atomics_work(random_source *from, int operations);
void atomics_check(void); /* by one thread, collective */

void signals_begin(void);
void signals_work(random_source *from, int rounds);

void locks_begin(void);
void locks_work(random_source *from, int operations);

/* `common` is the same on all members. */
void collectives_work(random_source *common, ompx_group_t group, int calls);

/* Memory and groups that come and go; by one thread, collective. */
void churn(void);

#endif
