/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Litmus tests (litmus.h) between ranks: batches of all tests on changing ranks for some seconds.
 * C and C++. The including program has a function that runs this rank's roles of a batch. */
#ifndef DIOMP_TESTS_OFFLOAD_LITMUS_RANKS_H
#define DIOMP_TESTS_OFFLOAD_LITMUS_RANKS_H

#include "offload/litmus.h"

#include <diomp.h>
#include <string.h>
#include <time.h>

/* Runs the roles of this rank: seen[role] and status[role] of others stay. */
typedef void (*litmus_roles_function)(const struct litmus_batch *of, struct litmus_seen *seen,
                                      int *status);

/* In symmetric host memory; that of rank 0 collects. */
struct litmus_shared {
    struct litmus_seen seen[LITMUS_ROLES];
    int64_t goes_on;
};

struct litmus_counts {
    int iterations;
    int overlapped;
};

static inline double litmus_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* One batch. Returns 0; otherwise text[length] says what is wrong. Collective. */
static inline int litmus_run_batch(const struct litmus_batch *of, litmus_roles_function roles,
                                   struct litmus_shared *shared, struct litmus_counts *counts,
                                   char *text, size_t length) {
    int const me = ompx_rank_num();
    struct litmus_seen seen[LITMUS_ROLES];
    int status[LITMUS_ROLES] = {0, 0, 0, 0};
    memset(seen, 0, sizeof(seen));
    roles(of, seen, status);
    for (int role = 0; role < of->num_roles; ++role) {
        if (of->rank_of[role] == me) {
            if (status[role] != 0) {
                snprintf(text, length, "%s: role %d at rank %d: status %d, %s",
                         litmus_name(of->test), role, me, status[role], ompx_last_error());
                return 1;
            }
            if (ompx_put(0, &shared->seen[role], &seen[role], sizeof(seen[role])) != 0) {
                snprintf(text, length, "cannot collect: %s", ompx_last_error());
                return 1;
            }
        }
    }
    if (ompx_fence() != 0 || ompx_barrier() != 0) {
        snprintf(text, length, "no barrier: %s", ompx_last_error());
        return 1;
    }
    for (int i = 0; i < LITMUS_BATCH && me == 0; ++i) {
        if (litmus_forbids(of, shared->seen, i, text, length)) {
            return 1;
        }
        counts->iterations += 1;
        counts->overlapped += litmus_overlapped(of, shared->seen, i);
    }
    return ompx_barrier();
}

/* Rank 0 decides for all. */
static inline int litmus_goes_on(struct litmus_shared *shared, double until) {
    if (ompx_rank_num() == 0) {
        int64_t const goes_on = litmus_seconds() < until;
        for (int rank = 0; rank < ompx_num_ranks(); ++rank) {
            ompx_put(rank, &shared->goes_on, &goes_on, sizeof(goes_on));
        }
    }
    ompx_fence();
    ompx_barrier();
    int const goes_on = *(volatile int64_t *)&shared->goes_on != 0;
    ompx_barrier(); /* before rank 0 decides again */
    return goes_on;
}

/* All tests, at least one batch of each, on and on for `seconds`. Prints what rank 0 has
 * counted. Returns 0; otherwise text[length] says what is wrong. Collective. */
static inline int litmus_run(litmus_roles_function roles, double seconds, char *text,
                             size_t length) {
    struct litmus_shared *const shared =
        (struct litmus_shared *)ompx_alloc(sizeof(*shared), 0, OMPX_MEM_SYMMETRIC);
    struct litmus_counts counts[LITMUS_TESTS];
    double const until = litmus_seconds() + seconds;
    uint64_t first = 1;
    int n = 0;
    memset(counts, 0, sizeof(counts));
    do {
        for (int test = 0; test < LITMUS_TESTS; ++test) {
            struct litmus_batch const batch = litmus_nth_batch(test, n, ompx_num_ranks(), first);
            if (litmus_run_batch(&batch, roles, shared, &counts[test], text, length) != 0) {
                return 1;
            }
            first += LITMUS_BATCH;
        }
        ++n;
    } while (litmus_goes_on(shared, until));
    for (int test = 0; test < LITMUS_TESTS && ompx_rank_num() == 0; ++test) {
        printf("%-52s %6d iterations, %6d overlapped\n", litmus_name(test), counts[test].iterations,
               counts[test].overlapped);
    }
    return ompx_free(shared);
}

#endif
