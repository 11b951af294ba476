/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * stress SECONDS THREADS SEED [LOG2_OF_THE_LARGEST_TRANSFER] */
#include "stress.h"

#include <stdlib.h>
#include <string.h>

stress_job job;
static ompx_group_t groups[MAX_THREADS]; /* of all ranks, one for each thread */

size_t draw_size(random_source *from, size_t largest) {
    int bits = 0;
    while (largest >> (bits + 1) != 0) {
        ++bits;
    }
    size_t const low = (size_t)1 << draw_below(from, (size_t)bits + 1);
    size_t const size = low + draw_below(from, low);
    return size > largest ? largest : size;
}

void fill(void *to, size_t nbytes, uint64_t number) {
    unsigned char *const bytes = to;
    for (size_t i = 0; i < nbytes; ++i) {
        bytes[i] = (unsigned char)(mix(number + i / 8) >> (8 * (i % 8)));
    }
}

void *need(void *memory) {
    REQUIRE(memory != NULL, "no memory");
    return memory;
}

/* ---- Memory and groups that come and go */

static void churn_memory(random_source *common) {
    enum { BLOCKS = 8 };
    unsigned char *blocks[BLOCKS];
    size_t sizes[BLOCKS];
    for (int i = 0; i < BLOCKS; ++i) {
        sizes[i] = draw_size(common, 1 << 20);
        blocks[i] = need(ompx_alloc(sizes[i], 0, i % 2 ? OMPX_MEM_SYMMETRIC : OMPX_MEM_ASYMMETRIC));
        memset(blocks[i], i, sizes[i]);
    }
    SUCCEEDS(ompx_barrier());
    for (int left = BLOCKS; left > 0; --left) {
        int which = (int)draw_below(common, BLOCKS);
        while (blocks[which] == NULL) {
            which = (which + 1) % BLOCKS;
        }
        REQUIRE(blocks[which][0] == which && blocks[which][sizes[which] - 1] == which,
                "an allocation has another one's bytes");
        SUCCEEDS(ompx_free(blocks[which]));
        blocks[which] = NULL;
    }
}

static void churn_groups(void) {
    ompx_group_t half;
    ompx_group_t copy;
    random_source common = {mix(job.seed + 99 + (uint64_t)job.phase + (uint64_t)(job.me % 2))};
    SUCCEEDS(ompx_group_split(ompx_group_world, job.me % 2, -job.me, &half));
    collectives_work(&common, half, 4);
    SUCCEEDS(ompx_group_dup(half, &copy));
    collectives_work(&common, copy, 2);
    SUCCEEDS(ompx_group_free(&copy));
    SUCCEEDS(ompx_group_free(&half));
}

void churn(void) {
    random_source common = {mix(job.seed + 77 + (uint64_t)job.phase)};
    churn_memory(&common);
    churn_groups();
}

/* ---- Phases: all workers do one kind of work, or all kinds beside each other */

enum { TRANSFERS, ATOMICS, SIGNALS, LOCKS, EVERYTHING, NUM_WORKS };

static void work(int kind, random_source *from) {
    int const t = omp_get_thread_num();
    random_source common = {mix(job.seed ^ ((uint64_t)job.phase << 16) ^ (uint64_t)t)};
    for (int i = 0; i < 8; ++i) {
        if (kind == TRANSFERS || kind == EVERYTHING) {
            areas_work(from, 40);
            collectives_work(&common, groups[t], 3);
        }
        if (kind == ATOMICS || kind == EVERYTHING) {
            atomics_work(from, 40);
        }
        if (kind == SIGNALS || kind == EVERYTHING) {
            signals_work(from, 6);
        }
        if (kind == LOCKS || kind == EVERYTHING) {
            locks_work(from, 10);
        }
    }
    areas_settle();
}

static void check(void) {
#pragma omp parallel num_threads(job.threads)
    areas_check_all();
    areas_check_guards();
    atomics_check();
    churn();
    SUCCEEDS(ompx_barrier());
}

static void run(double seconds) {
    random_source own[MAX_THREADS];
    for (int t = 0; t < job.threads; ++t) {
        own[t].state = mix(job.seed * 1000 + (uint64_t)job.me * 64 + (uint64_t)t);
    }
    double const end = omp_get_wtime() + seconds;
    for (int go_on = 1; go_on; ++job.phase) {
        int const kind = (int)(mix(job.seed ^ (uint64_t)job.phase) % NUM_WORKS);
#pragma omp parallel num_threads(job.threads)
        work(kind, &own[omp_get_thread_num()]);
        SUCCEEDS(ompx_barrier());
        go_on = omp_get_wtime() < end;
        SUCCEEDS(ompx_bcast(&go_on, sizeof go_on, ompx_group_world));
        if (job.phase % 4 == 3 || !go_on) {
            check();
        }
    }
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: stress SECONDS THREADS SEED [LOG2_OF_THE_LARGEST_TRANSFER]\n");
        return 2;
    }
    job.me = ompx_rank_num();
    job.ranks = ompx_num_ranks();
    job.threads = atoi(argv[2]);
    job.seed = strtoull(argv[3], NULL, 0);
    job.area_bytes = (size_t)1 << (argc > 4 ? atoi(argv[4]) : 16);
    REQUIRE(job.threads >= 1 && job.threads <= MAX_THREADS, "1 to %d threads", MAX_THREADS);
    areas_begin();
    atomics_begin();
    signals_begin();
    locks_begin();
    for (int t = 0; t < job.threads; ++t) {
        SUCCEEDS(ompx_group_dup(ompx_group_world, &groups[t]));
    }
    SUCCEEDS(ompx_barrier()); /* everything is zeroed: transfers may begin */
    run(atof(argv[1]));
    for (int t = job.threads; t-- > 0;) {
        SUCCEEDS(ompx_group_free(&groups[t]));
    }
    areas_end();
    if (job.me == 0) {
        printf("stress: %ld phases, all right\n", job.phase);
    }
    return 0;
}
