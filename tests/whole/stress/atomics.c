/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Atomics of all workers on the same variables; what they add up to is compared at the end. */
#include "stress.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RANKS = 64 };

typedef struct cells {
    uint64_t sum, bits;      /* on every rank */
    uint64_t swapped;        /* on rank 0: counted by compare and swap */
    double real;             /* on rank 0 */
    uint32_t narrow, beside; /* on rank 0 */
} cells;

static cells *shared;
/* What this rank's workers have done, [target]. */
static _Atomic uint64_t sums[MAX_RANKS], bits[MAX_RANKS];
static _Atomic uint64_t swaps, reals, narrows;

void atomics_begin(void) {
    REQUIRE(job.ranks <= MAX_RANKS, "at most %d ranks", MAX_RANKS);
    shared = need(ompx_alloc(sizeof *shared, 0, OMPX_MEM_SYMMETRIC));
    memset(shared, 0, sizeof *shared);
}

static void count_by_swap(void) {
    uint64_t seen = 0;
    SUCCEEDS(ompx_get(&seen, 0, &shared->swapped, sizeof seen));
    for (;;) {
        uint64_t const next = seen + 1;
        uint64_t found = 0;
        SUCCEEDS(ompx_atomic_compare_swap(0, &shared->swapped, &seen, &next, &found, OMPX_UINT64));
        if (found == seen) {
            break;
        }
        seen = found;
    }
    atomic_fetch_add(&swaps, 1);
}

void atomics_work(random_source *from, int operations) {
    for (int i = 0; i < operations; ++i) {
        int const target = (int)draw_below(from, (size_t)job.ranks);
        uint64_t const value = draw(from);
        uint64_t old = 0;
        double const one = 1;
        uint32_t const narrow_one = 1;
        uint32_t narrow_old = 0;
        switch (draw_below(from, 6)) {
        case 0:
            SUCCEEDS(ompx_atomic_add(target, &shared->sum, &value, OMPX_UINT64));
            atomic_fetch_add(&sums[target], value);
            break;
        case 1:
            SUCCEEDS(ompx_atomic_fetch_add(target, &shared->sum, &value, &old, OMPX_UINT64));
            atomic_fetch_add(&sums[target], value);
            break;
        case 2:
            SUCCEEDS(ompx_atomic_xor(target, &shared->bits, &value, OMPX_UINT64));
            atomic_fetch_xor(&bits[target], value);
            break;
        case 3:
            count_by_swap();
            break;
        case 4:
            SUCCEEDS(ompx_atomic_add(0, &shared->real, &one, OMPX_DOUBLE));
            atomic_fetch_add(&reals, 1);
            break;
        default:
            SUCCEEDS(
                ompx_atomic_fetch_add(0, &shared->narrow, &narrow_one, &narrow_old, OMPX_UINT32));
            atomic_fetch_add(&narrows, 1);
        }
    }
}

static void add_up(uint64_t *result, _Atomic uint64_t *mine, size_t count, ompx_op_t op) {
    uint64_t values[MAX_RANKS];
    for (size_t i = 0; i < count; ++i) {
        values[i] = atomic_load(&mine[i]);
    }
    SUCCEEDS(ompx_allreduce(result, values, count, OMPX_UINT64, op, ompx_group_world));
}

void atomics_check(void) {
    uint64_t all[MAX_RANKS];
    add_up(all, sums, (size_t)job.ranks, OMPX_SUM);
    REQUIRE(shared->sum == all[job.me], "atomic additions are lost");
    add_up(all, bits, (size_t)job.ranks, OMPX_BXOR);
    REQUIRE(shared->bits == all[job.me], "atomic xors are lost");
    add_up(&all[0], &swaps, 1, OMPX_SUM);
    add_up(&all[1], &reals, 1, OMPX_SUM);
    add_up(&all[2], &narrows, 1, OMPX_SUM);
    if (job.me == 0) {
        REQUIRE(shared->swapped == all[0], "increments by compare and swap are lost");
        REQUIRE(shared->real == (double)all[1], "additions of doubles are lost");
        REQUIRE(shared->narrow == (uint32_t)all[2] && shared->beside == 0,
                "32-bit additions are lost, or have touched their neighbour");
    }
}
