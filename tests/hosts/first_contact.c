/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * A job that ends soon after its ranks have first reached each other. short_jobs_test.py runs many
 * of them; what is first is named by the only argument:
 *
 *   barrier   nothing else
 *   put       every rank puts to all ranks
 *   get       every rank gets from all ranks
 *   atomic    every rank adds at all ranks
 *   large     every rank puts more to all ranks than travels in one message
 *   alltoall  the collective call
 *   threads   four threads of every rank put to all ranks, each in another order
 *   leave     every rank puts to the next one and ends, while others still connect
 */
#include "support/check.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, LARGE_WORDS = 1 << 17, BLOCK_WORDS = 512 };

static int me, ranks;
static int64_t *memory;

static int64_t value(int from, int to) { return 1 + from + (int64_t)ranks * to; }

static int64_t *symmetric(size_t words) {
    int64_t *const made = ompx_alloc(words * sizeof(int64_t), 64, OMPX_MEM_SYMMETRIC);
    CHECK(made != NULL);
    return made;
}

static void put_to_all(void) {
    memory = symmetric((size_t)ranks);
    for (int i = 1; i <= ranks; ++i) {
        int const to = (me + i) % ranks;
        int64_t const mine = value(me, to);
        CHECK(ompx_put(to, &memory[me], &mine, sizeof(mine)) == 0);
    }
    CHECK(ompx_barrier() == 0);
    for (int from = 0; from < ranks; ++from) {
        CHECK(memory[from] == value(from, me));
    }
}

static void get_from_all(void) {
    memory = symmetric(1);
    *memory = value(me, me);
    CHECK(ompx_barrier() == 0);
    for (int i = 1; i <= ranks; ++i) {
        int const from = (me + i) % ranks;
        int64_t theirs = 0;
        CHECK(ompx_get(&theirs, from, memory, sizeof(theirs)) == 0);
        CHECK(theirs == value(from, from));
    }
    CHECK(ompx_barrier() == 0);
}

static void add_at_all(void) {
    memory = symmetric(1);
    *memory = 0;
    CHECK(ompx_barrier() == 0);
    int64_t const one = 1;
    for (int i = 1; i <= ranks; ++i) {
        int64_t before = -1;
        CHECK(ompx_atomic_fetch_add((me + i) % ranks, memory, &one, &before, OMPX_INT64) == 0);
        CHECK(before >= 0 && before < ranks);
    }
    CHECK(ompx_barrier() == 0);
    CHECK(*memory == ranks);
}

static void put_much_to_all(void) {
    size_t const words = LARGE_WORDS / (size_t)ranks;
    memory = symmetric(words * (size_t)ranks);
    int64_t *const mine = malloc(words * sizeof(*mine));
    CHECK(mine != NULL);
    for (int i = 1; i <= ranks; ++i) {
        int const to = (me + i) % ranks;
        for (size_t word = 0; word < words; ++word) {
            mine[word] = value(me, to) + (int64_t)word;
        }
        CHECK(ompx_put(to, memory + words * (size_t)me, mine, words * sizeof(*mine)) == 0);
    }
    CHECK(ompx_barrier() == 0);
    for (int from = 0; from < ranks; ++from) {
        for (size_t word = 0; word < words; ++word) {
            CHECK(memory[words * (size_t)from + word] == value(from, me) + (int64_t)word);
        }
    }
    free(mine);
}

static void all_to_all(void) {
    size_t const words = BLOCK_WORDS * (size_t)ranks;
    int64_t *const mine = malloc(words * sizeof(*mine));
    int64_t *const theirs = malloc(words * sizeof(*theirs));
    CHECK(mine != NULL && theirs != NULL);
    for (size_t word = 0; word < words; ++word) {
        mine[word] = value(me, (int)(word / BLOCK_WORDS)) + (int64_t)(word % BLOCK_WORDS);
    }
    CHECK(ompx_alltoall(theirs, mine, BLOCK_WORDS * sizeof(*mine), ompx_group_world) == 0);
    for (size_t word = 0; word < words; ++word) {
        CHECK(theirs[word] == value((int)(word / BLOCK_WORDS), me) + (int64_t)(word % BLOCK_WORDS));
    }
    free(mine);
    free(theirs);
}

static void *put_by_thread(void *number) {
    int const thread = *(int *)number;
    for (int i = 0; i < ranks; ++i) {
        int const to = (thread % 2 == 0 ? me + thread + i : me + ranks + thread - i) % ranks;
        int64_t const mine = value(me, to) + thread;
        CHECK(ompx_put(to, &memory[me * THREADS + thread], &mine, sizeof(mine)) == 0);
    }
    CHECK(ompx_fence(NULL) == 0);
    return NULL;
}

static void put_by_threads(void) {
    memory = symmetric((size_t)ranks * THREADS);
    pthread_t threads[THREADS];
    int numbers[THREADS];
    for (int i = 0; i < THREADS; ++i) {
        numbers[i] = i;
        CHECK(pthread_create(&threads[i], NULL, &put_by_thread, &numbers[i]) == 0);
    }
    for (int i = 0; i < THREADS; ++i) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    CHECK(ompx_barrier() == 0);
    for (int from = 0; from < ranks; ++from) {
        for (int thread = 0; thread < THREADS; ++thread) {
            CHECK(memory[from * THREADS + thread] == value(from, me) + thread);
        }
    }
}

static void put_and_leave(void) {
    memory = symmetric((size_t)ranks);
    int const next = (me + 1) % ranks;
    int64_t const mine = value(me, next);
    CHECK(ompx_put(next, &memory[me], &mine, sizeof(mine)) == 0);
}

static void only_meet(void) { CHECK(ompx_barrier() == 0); }

static const struct {
    const char *name;
    void (*run)(void);
} kinds[] = {{"barrier", &only_meet},      {"put", &put_to_all},        {"get", &get_from_all},
             {"atomic", &add_at_all},      {"large", &put_much_to_all}, {"alltoall", &all_to_all},
             {"threads", &put_by_threads}, {"leave", &put_and_leave}};

int main(int argc, char **argv) {
    me = ompx_rank_num();
    ranks = ompx_num_ranks();
    for (size_t i = 0; argc == 2 && i < sizeof(kinds) / sizeof(*kinds); ++i) {
        if (strcmp(argv[1], kinds[i].name) == 0) {
            kinds[i].run();
            printf("rank %d of %d: %s\n", me, ranks, kinds[i].name);
            return 0;
        }
    }
    fprintf(stderr, "first_contact: needs one of the words that its source lists\n");
    return 2;
}
