/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * What faults_test.py runs while it does harm to hosts and ranks: every transfer is checked. If
 * DIOMP_TEST_LOG is set, rank r writes its errors to $DIOMP_TEST_LOG.r, where they are found even
 * when no way leads from its host to the launcher any more.
 *
 *   endure rounds N       N rounds of every kind of communication; rank 0 prints "round i".
 *                         Without N: until rank 0 reads a line
 *   endure flood N        rank 0 prints "ready", reads a line, puts N values to each of the others
 *                         without a fence in between, prints "sent", fences, prints "fenced"
 *   endure get            rank 0 prints "ready", reads a line, gets from the last rank
 *   endure lock           rank 0 prints "ready", reads a line, locks at the last rank
 *   endure atomic         rank 0 prints "ready", reads a line, adds at the last rank */
#include "support/check.h"

#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORDS = 8192 };

static int me, ranks;
static int64_t *memory; /* symmetric, WORDS */

static void errors_to_file(void) {
    char name[4096];
    const char *prefix = getenv("DIOMP_TEST_LOG");
    if (prefix == NULL) {
        return;
    }
    (void)snprintf(name, sizeof(name), "%s.%d", prefix, me);
    int const file = open(name, O_CREAT | O_WRONLY | O_APPEND, 0644);
    CHECK(file >= 0 && dup2(file, STDERR_FILENO) >= 0);
    close(file);
}

static void say(const char *word) {
    printf("%s\n", word);
    fflush(stdout);
}

static void wait_to_be_told(void) {
    char line[64];
    say("ready");
    CHECK(fgets(line, sizeof(line), stdin) != NULL);
}

/* Different for each place, rank and round. */
static int64_t value(int rank, int round, int word) {
    return ((int64_t)rank << 48) + ((int64_t)round << 16) + word;
}

static void transfers(int round) {
    static int64_t mine[WORDS / 2];
    int const next = (me + 1) % ranks, before = (me + ranks - 1) % ranks;
    for (int i = 0; i < WORDS / 2; ++i) {
        mine[i] = value(me, round, i);
    }
    CHECK(ompx_put(next, memory, mine, sizeof(mine)) == 0);
    CHECK(ompx_fence(NULL) == 0);
    CHECK(ompx_barrier() == 0);
    for (int i = 0; i < WORDS / 2; ++i) {
        CHECK(memory[i] == value(before, round, i));
    }
    CHECK(ompx_get(mine, next, memory, sizeof(mine)) == 0);
    for (int i = 0; i < WORDS / 2; ++i) {
        CHECK(mine[i] == value(me, round, i));
    }
}

/* A counter at the last rank that everybody adds to under its lock, one that needs no lock. */
static void counters(int round) {
    int const place = ranks - 1;
    int64_t const one = 1;
    int64_t locked = 0, sum = 0;
    CHECK(ompx_lock(place) == 0);
    CHECK(ompx_get(&locked, place, memory + WORDS - 1, sizeof(locked)) == 0);
    ++locked;
    CHECK(ompx_put(place, memory + WORDS - 1, &locked, sizeof(locked)) == 0);
    CHECK(ompx_fence(NULL) == 0);
    CHECK(ompx_unlock(place) == 0);
    CHECK(ompx_atomic_add(place, memory + WORDS - 2, &one, OMPX_INT64) == 0);
    CHECK(ompx_fence(NULL) == 0);
    CHECK(ompx_allreduce(&sum, &one, 1, OMPX_INT64, OMPX_SUM, NULL) == 0);
    CHECK(sum == ranks);
    if (me == place) {
        CHECK(memory[WORDS - 1] == (int64_t)(round + 1) * ranks);
        CHECK(memory[WORDS - 2] == (int64_t)(round + 1) * ranks);
    }
    CHECK(ompx_barrier() == 0);
}

/* On every rank: whether rank 0 has a line to read. */
static int is_told_to_end(void) {
    struct pollfd input = {STDIN_FILENO, POLLIN, 0};
    int32_t told = me == 0 && poll(&input, 1, 0) > 0;
    CHECK(ompx_bcast(&told, sizeof(told), NULL) == 0);
    return told;
}

/* count 0: until told to end */
static void rounds(int count) {
    for (int round = 0; count == 0 ? !is_told_to_end() : round < count; ++round) {
        transfers(round);
        counters(round);
        if (me == 0) {
            char word[32];
            (void)snprintf(word, sizeof(word), "round %d", round);
            say(word);
        }
    }
}

static void flood(int count) {
    if (me == 0) {
        wait_to_be_told();
        for (int i = 0; i < count; ++i) {
            int64_t const v = WORDS + i;
            for (int peer = 1; peer < ranks; ++peer) {
                CHECK(ompx_put(peer, memory + i % WORDS, &v, sizeof(v)) == 0);
            }
        }
        say("sent");
        CHECK(ompx_fence(NULL) == 0);
        say("fenced");
    }
    CHECK(ompx_barrier() == 0);
    for (int i = count > WORDS ? count - WORDS : 0; me != 0 && i < count; ++i) {
        /* Puts to one place without a fence in between have no order. */
        int64_t const seen = memory[i % WORDS];
        CHECK(seen >= WORDS && seen < WORDS + count && seen % WORDS == i % WORDS);
    }
}

static void get(void) {
    int64_t seen = 0;
    CHECK(ompx_get(&seen, ranks - 1, memory, sizeof(seen)) == 0);
}
static void lock(void) {
    CHECK(ompx_lock(ranks - 1) == 0);
    CHECK(ompx_unlock(ranks - 1) == 0);
}
static void atomic(void) {
    int64_t const one = 1;
    CHECK(ompx_atomic_add(ranks - 1, memory, &one, OMPX_INT64) == 0);
    CHECK(ompx_fence(NULL) == 0);
}

static struct single {
    const char *name;
    void (*act)(void);
} const singles[] = {{"get", get}, {"lock", lock}, {"atomic", atomic}};

int main(int argc, char **argv) {
    CHECK(argc > 1);
    int const count = argc > 2 ? atoi(argv[2]) : 0;
    me = ompx_rank_num();
    ranks = ompx_num_ranks();
    errors_to_file();
    memory = ompx_alloc(WORDS * sizeof(*memory), 0, OMPX_MEM_SYMMETRIC);
    CHECK(memory != NULL);
    memset(memory, 0, WORDS * sizeof(*memory));
    CHECK(ompx_barrier() == 0);
    if (strcmp(argv[1], "rounds") == 0) {
        rounds(count);
    } else if (strcmp(argv[1], "flood") == 0) {
        flood(count);
    }
    for (size_t i = 0; i < sizeof(singles) / sizeof(singles[0]); ++i) {
        if (strcmp(argv[1], singles[i].name) == 0 && me == 0) {
            wait_to_be_told();
            singles[i].act();
            say("done");
        }
    }
    CHECK(ompx_barrier() == 0);
    return 0;
}
