/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * A million random allocations and frees per rank, by two threads at once, with what lies in them
 * checked; at the end the segment is whole again. */
#include "support/check.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

enum { THREADS = 2, STEPS = 1000000 / THREADS, SLOTS = 1500 };

struct slot {
    unsigned char *p;
    size_t nbytes;
    unsigned char pattern;
};
static _Thread_local uint64_t random_state;
static uint64_t draw(uint64_t limit) {
    /* xorshift64 (Marsaglia 2003) */
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (random_state >> 11) % limit;
}

/* Mostly small, as programs do it; a few with pages of their own. */
static size_t draw_size(void) {
    uint64_t const kind = draw(1000);
    return kind < 900 ? draw(513) : kind < 999 ? draw(4000) : draw(300000);
}

static void take(struct slot *s) {
    s->nbytes = draw_size();
    s->pattern = (unsigned char)draw(256);
    size_t const alignment = (size_t)64 << draw(4);
    s->p = ompx_alloc(s->nbytes, alignment, OMPX_MEM_LOCAL);
    CHECK(s->p != NULL);
    CHECK((size_t)s->p % alignment == 0);
    memset(s->p, s->pattern, s->nbytes);
}

static void give_back(struct slot *s) {
    /* All bytes equal the first, and the first is the pattern. */
    CHECK(s->nbytes == 0 || (s->p[0] == s->pattern && memcmp(s->p, s->p + 1, s->nbytes - 1) == 0));
    CHECK(ompx_free(s->p) == 0);
    s->p = NULL;
}

struct worker {
    pthread_t thread;
    int number;
    struct slot slots[SLOTS];
};
static struct worker workers[THREADS];

static void *churn(void *argument) {
    struct worker *self = argument;
    random_state = 88172645463325252u + (uint64_t)(ompx_rank_num() * THREADS + self->number) * 977;
    for (int step = 0; step < STEPS; ++step) {
        struct slot *s = &self->slots[draw(SLOTS)];
        if (s->p != NULL) {
            give_back(s);
        } else {
            take(s);
        }
    }
    return NULL;
}

int main(void) {
    ompx_segment_info_t before, during, after;
    CHECK(ompx_segment_info(&before) == 0);
    for (int i = 0; i < THREADS; ++i) {
        workers[i].number = i;
        CHECK(pthread_create(&workers[i].thread, NULL, churn, &workers[i]) == 0);
    }
    for (int i = 0; i < THREADS; ++i) {
        CHECK(pthread_join(workers[i].thread, NULL) == 0);
    }
    /* Some 300 MB went through. What is in use now depends on how the threads ran, and a few large
     * blocks at the wrong time leave holes; but without reuse nearly all of it would be lost. */
    enum { HOLES = 16 << 20 };
    CHECK(ompx_segment_info(&during) == 0);
    size_t const used = during.local_used - before.local_used;
    size_t const lost = before.largest_free - during.largest_free;
    CHECK(used > 0 && lost < used + HOLES);
    for (int i = 0; i < THREADS * SLOTS; ++i) {
        struct slot *s = &workers[i / SLOTS].slots[i % SLOTS];
        if (s->p != NULL) {
            give_back(s);
        }
    }
    CHECK(ompx_segment_info(&after) == 0);
    CHECK(after.largest_free == before.largest_free);
    CHECK(after.num_allocations == before.num_allocations);
    CHECK(after.local_used == before.local_used);
    return 0;
}
