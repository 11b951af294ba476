/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * What a collective allocation promises about its contents holds on every rank before any rank
 * returns: a put into another rank's new memory is never overwritten by its zeroing or copying. */
#include "support/check.h"

#include <omp.h>
#include <stdlib.h>

enum { LENGTH = 100000, ROUNDS = 10, OLD = 1000 };

static int me, ranks;

/* Each returns LENGTH numbers of collective memory, of which the first OLD may have been filled. */
static int64_t *symmetric_calloc(void) {
    return omp_calloc(LENGTH, sizeof(int64_t), ompx_symmetric_mem_alloc);
}
static int64_t *symmetric_aligned_calloc(void) {
    return omp_aligned_calloc(4096, LENGTH, sizeof(int64_t), ompx_symmetric_mem_alloc);
}
static int64_t *asymmetric_calloc(void) {
    return omp_calloc(LENGTH + (size_t)me, sizeof(int64_t), ompx_asymmetric_mem_alloc);
}
static int64_t *asymmetric_aligned_calloc(void) {
    return omp_aligned_calloc(4096, LENGTH, sizeof(int64_t), ompx_asymmetric_mem_alloc);
}
static int64_t *grown(void *small, omp_allocator_handle_t from, omp_allocator_handle_t to) {
    return omp_realloc(small, LENGTH * sizeof(int64_t), to, from);
}
static int64_t *grown_in_kind(void) {
    return grown(omp_calloc(OLD, sizeof(int64_t), ompx_symmetric_mem_alloc),
                 ompx_symmetric_mem_alloc, ompx_symmetric_mem_alloc);
}
/* All of the old block is copied, over the place that the others write to. */
static int64_t *moved_from(omp_allocator_handle_t from, omp_allocator_handle_t to) {
    return grown(omp_calloc(LENGTH, sizeof(int64_t), from), from, to);
}
static int64_t *moved_from_local(void) {
    return moved_from(ompx_local_mem_alloc, ompx_symmetric_mem_alloc);
}
static int64_t *moved_from_openmp(void) {
    return moved_from(omp_default_mem_alloc, ompx_symmetric_mem_alloc);
}
static int64_t *moved_from_openmp_to_asymmetric(void) {
    return moved_from(omp_default_mem_alloc, ompx_asymmetric_mem_alloc);
}
static int64_t *moved_between_kinds(void) {
    return moved_from(ompx_symmetric_mem_alloc, ompx_asymmetric_mem_alloc);
}

static const struct form {
    const char *name;
    int64_t *(*make)(void);
    int zeroed; /* all elements, not only the first */
} forms[] = {
    {"omp_calloc, symmetric", symmetric_calloc, 1},
    {"omp_aligned_calloc, symmetric", symmetric_aligned_calloc, 1},
    {"omp_calloc, asymmetric", asymmetric_calloc, 1},
    {"omp_aligned_calloc, asymmetric", asymmetric_aligned_calloc, 1},
    {"omp_realloc, symmetric", grown_in_kind, 0},
    {"omp_realloc, local to symmetric", moved_from_local, 1},
    {"omp_realloc, OpenMP's to symmetric", moved_from_openmp, 1},
    {"omp_realloc, OpenMP's to asymmetric", moved_from_openmp_to_asymmetric, 1},
    {"omp_realloc, symmetric to asymmetric", moved_between_kinds, 1},
};

/* The number of elements that are not what they should be. */
static int64_t count_wrong(const int64_t *made, int zeroed) {
    int64_t wrong = 0;
    for (int i = 0; i < (zeroed ? LENGTH - ranks : OLD); ++i) {
        wrong += made[i] != 0;
    }
    for (int rank = 0; rank < ranks; ++rank) {
        wrong += made[LENGTH - 1 - rank] != rank + 1;
    }
    return wrong;
}

static int64_t try_form(const struct form *form) {
    int64_t *made = form->make();
    CHECK(made != NULL);
    int64_t const mine = me + 1;
    for (int rank = 0; rank < ranks; ++rank) { /* at once, no barrier */
        CHECK(ompx_put(rank, &made[LENGTH - 1 - me], &mine, sizeof(mine)) == 0);
    }
    CHECK(ompx_barrier() == 0);
    int64_t const wrong = count_wrong(made, form->zeroed);
    for (int i = 0; i < LENGTH; ++i) { /* what comes next in this place finds no zeros */
        made[i] = -7;
    }
    CHECK(ompx_free(made) == 0);
    return wrong;
}

int main(void) {
    me = ompx_rank_num();
    ranks = ompx_num_ranks();
    int failures = 0;
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); ++i) {
        int64_t wrong = 0;
        for (int round = 0; round < ROUNDS; ++round) {
            wrong += try_form(&forms[i]);
        }
        if (wrong != 0) {
            fprintf(stderr, "rank %d: %s: %lld elements are wrong\n", me, forms[i].name,
                    (long long)wrong);
            ++failures;
        }
    }
    CHECK(ompx_barrier() == 0);
    return failures != 0;
}
