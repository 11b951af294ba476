/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * OpenMP's allocation calls and pragma with DiOMP's allocators, beside OpenMP's own. */
#include "support/check.h"

#include <omp.h>
#include <string.h>

enum { LENGTH = 1000, MIB = 1 << 20 };

static int me, ranks, next, previous;

/* The value that rank `rank` keeps in element i. */
static int value(int rank, int i) { return rank * 100000 + i; }

static ompx_segment_info_t segment(void) {
    ompx_segment_info_t info;
    CHECK(ompx_segment_info(&info) == 0);
    return info;
}

static ompx_mem_kind_t kind_of(const void *p) {
    ompx_addr_info_t info;
    CHECK(ompx_addr_info(p, &info) == 0);
    return info.kind;
}

static size_t offset_of(const void *p) {
    ompx_addr_info_t info;
    CHECK(ompx_addr_info(p, &info) == 0);
    return info.offset;
}

static void check_symmetric(const void *p) {
    size_t mine = offset_of(p);
    size_t lowest = 0;
    CHECK(ompx_allreduce(&lowest, &mine, 1, OMPX_UINT64, OMPX_MIN, NULL) == 0);
    CHECK(lowest == mine);
}

static void fill(unsigned char *p, size_t nbytes, int seed) {
    for (size_t i = 0; i < nbytes; ++i) {
        p[i] = (unsigned char)(i * 7 + (size_t)seed + i / 251);
    }
}

static int holds(const unsigned char *p, size_t nbytes, int seed) {
    for (size_t i = 0; i < nbytes; ++i) {
        if (p[i] != (unsigned char)(i * 7 + (size_t)seed + i / 251)) {
            return 0;
        }
    }
    return 1;
}

/* A put into the next rank's copy arrives there, for allocators whose own address names it. */
static void check_reachable(int *p) {
    int sent[LENGTH];
    for (int i = 0; i < LENGTH; ++i) {
        sent[i] = value(me, i);
        p[i] = -1;
    }
    CHECK(ompx_barrier() == 0);
    CHECK(ompx_put(next, p, sent, sizeof(sent)) == 0);
    CHECK(ompx_barrier() == 0);
    for (int i = 0; i < LENGTH; ++i) {
        CHECK(p[i] == value(previous, i));
    }
    CHECK(ompx_barrier() == 0);
}

static void every_call_with(omp_allocator_handle_t allocator, ompx_mem_kind_t kind) {
    size_t const nbytes = LENGTH * sizeof(int);
    int const reachable = kind != OMPX_MEM_LOCAL;
    int *plain = omp_alloc(nbytes, allocator);
    int *aligned = omp_aligned_alloc(65536, nbytes, allocator);
    CHECK(plain != NULL && kind_of(plain) == kind && (size_t)plain % 64 == 0);
    CHECK(aligned != NULL && kind_of(aligned) == kind && (size_t)aligned % 65536 == 0);
    memset(plain, 0xff, nbytes);
    memset(aligned, 0xff, nbytes);
    if (reachable) {
        check_reachable(plain);
        check_reachable(aligned);
    }
    /* What comes next lies where these were: it must be zero all the same. */
    omp_free(aligned, allocator);
    omp_free(plain, omp_null_allocator); /* OpenMP 5.2: finds the allocator itself */
    unsigned char *zeroed = omp_calloc(LENGTH, sizeof(int), allocator);
    unsigned char *both = omp_aligned_calloc(4096, LENGTH, sizeof(int), allocator);
    CHECK(zeroed != NULL && kind_of(zeroed) == kind);
    CHECK(both != NULL && kind_of(both) == kind && (size_t)both % 4096 == 0);
    for (size_t i = 0; i < nbytes; ++i) {
        CHECK(zeroed[i] == 0 && both[i] == 0);
    }
    omp_free(both, allocator);
    omp_free(zeroed, allocator);
    omp_free(NULL, allocator);
}

static void reallocation(omp_allocator_handle_t allocator, ompx_mem_kind_t kind) {
    size_t const before = segment().num_allocations;
    unsigned char *p = omp_realloc(NULL, 1000, allocator, allocator);
    CHECK(p != NULL && kind_of(p) == kind);
    fill(p, 1000, me);
    p = omp_realloc(p, 3 * MIB, allocator, allocator);
    CHECK(p != NULL && kind_of(p) == kind && holds(p, 1000, me));
    fill(p, 3 * MIB, me + 1);
    p = omp_realloc(p, 500, allocator, allocator);
    CHECK(p != NULL && kind_of(p) == kind && holds(p, 500, me + 1));
    if (kind == OMPX_MEM_SYMMETRIC) {
        check_symmetric(p);
    }
    omp_free(p, allocator);
    CHECK(segment().num_allocations == before);
}

/* gcc 12 does not know the pragma yet. */
#if defined(__clang__)
/* The variable moves into symmetric memory for its block, and is freed at the block's end. */
static void pragma_on_a_local_array(void) {
    size_t const before = segment().num_allocations;
    for (int round = 0; round < 3; ++round) {
        int array[LENGTH];
#pragma omp allocate(array) allocator(ompx_symmetric_mem_alloc)
        int wide[16];
#pragma omp allocate(wide) allocator(ompx_symmetric_mem_alloc) align(8192)
        CHECK(kind_of(array) == OMPX_MEM_SYMMETRIC && kind_of(wide) == OMPX_MEM_SYMMETRIC);
        CHECK((size_t)wide % 8192 == 0);
        CHECK(segment().num_allocations == before + 2);
        check_symmetric(array);
        check_reachable(array);
    }
    CHECK(segment().num_allocations == before);
}
#endif

static void openmps_own_allocators(void) {
    omp_alloctrait_t traits[] = {{omp_atk_alignment, 4096}};
    omp_allocator_handle_t const page = omp_init_allocator(omp_default_mem_space, 1, traits);
    CHECK(page != omp_null_allocator);
    omp_allocator_handle_t const own[] = {omp_default_mem_alloc, page, omp_null_allocator};
    size_t const before = segment().num_allocations;
    for (int i = 0; i < 3; ++i) {
        unsigned char *p = omp_alloc(5000, own[i]);
        unsigned char *q = omp_aligned_alloc(1024, 5000, own[i]);
        unsigned char *zeroed = omp_calloc(50, 100, own[i]);
        unsigned char *both = omp_aligned_calloc(2048, 50, 100, own[i]);
        CHECK(p != NULL && q != NULL && zeroed != NULL && both != NULL);
        CHECK(kind_of(p) == OMPX_MEM_NONE && kind_of(q) == OMPX_MEM_NONE);
        CHECK((size_t)q % 1024 == 0 && (size_t)both % 2048 == 0);
        CHECK(own[i] != page || ((size_t)p % 4096 == 0 && (size_t)zeroed % 4096 == 0));
        fill(p, 5000, i);
        fill(q, 5000, i + 1);
        for (int k = 0; k < 5000; ++k) {
            CHECK(zeroed[k] == 0 && both[k] == 0);
        }
        p = omp_realloc(p, 9000, own[i], own[i]);
        CHECK(p != NULL && holds(p, 5000, i) && holds(q, 5000, i + 1));
        omp_free(p, own[i]);
        omp_free(q, omp_null_allocator);
        omp_free(zeroed, own[i]);
        omp_free(both, own[i]);
    }
#if defined(__clang__)
    int array[LENGTH];
#pragma omp allocate(array) allocator(omp_default_mem_alloc)
    array[LENGTH - 1] = me;
    CHECK(kind_of(array) == OMPX_MEM_NONE && array[LENGTH - 1] == me);
#endif
    CHECK(segment().num_allocations == before);
    omp_destroy_allocator(page);
}

/* Where no allocator is named the thread's default one is meant, also if it is one of DiOMP's. */
static void default_allocator(omp_allocator_handle_t allocator, ompx_mem_kind_t kind) {
    omp_allocator_handle_t const usual = omp_get_default_allocator();
    omp_set_default_allocator(allocator);
    void *made[] = {omp_alloc(100, omp_null_allocator),
                    omp_aligned_alloc(4096, 100, omp_null_allocator),
                    omp_calloc(10, 10, omp_null_allocator),
                    omp_aligned_calloc(4096, 10, 10, omp_null_allocator),
                    omp_realloc(NULL, 100, omp_null_allocator, omp_null_allocator)};
#if defined(__clang__)
    int array[LENGTH];
#pragma omp allocate(array)
    CHECK(kind_of(array) == kind);
    check_reachable(array);
#endif
    for (int i = 0; i < 5; ++i) {
        CHECK(made[i] != NULL && kind_of(made[i]) == kind);
        omp_free(made[i], omp_null_allocator);
    }
    omp_set_default_allocator(usual);
}

/* From OpenMP's memory into global memory and back: omp_realloc may change the allocator. */
static void reallocation_between_allocators(void) {
    size_t const before = segment().num_allocations;
    unsigned char *p = omp_alloc(5000, omp_default_mem_alloc);
    CHECK(p != NULL);
    fill(p, 5000, me);
    p = omp_realloc(p, 8000, ompx_local_mem_alloc, omp_default_mem_alloc);
    CHECK(p != NULL && kind_of(p) == OMPX_MEM_LOCAL && holds(p, 5000, me));
    p = omp_realloc(p, 4000, omp_default_mem_alloc, ompx_local_mem_alloc);
    CHECK(p != NULL && kind_of(p) == OMPX_MEM_NONE && holds(p, 4000, me));
    omp_free(p, omp_default_mem_alloc);
    /* From one kind of global memory into another, and to nothing. */
    p = omp_alloc(1000, ompx_local_mem_alloc);
    fill(p, 1000, me);
    p = omp_realloc(p, 2000, ompx_symmetric_mem_alloc, ompx_local_mem_alloc);
    CHECK(p != NULL && kind_of(p) == OMPX_MEM_SYMMETRIC && holds(p, 1000, me));
    check_symmetric(p);
    CHECK(omp_realloc(p, 0, ompx_symmetric_mem_alloc, ompx_symmetric_mem_alloc) == NULL);
    CHECK(segment().num_allocations == before);
}

static void alignments(omp_allocator_handle_t allocator) {
    for (size_t alignment = 1; alignment <= 64 * (size_t)MIB; alignment *= 2) {
        /* An odd size before, so that alignment does not come by itself. */
        char *odd = omp_alloc(100, allocator);
        char *p = omp_aligned_alloc(alignment, 10, allocator);
        CHECK(odd != NULL && p != NULL && (size_t)p % alignment == 0);
        p[0] = p[9] = 1;
        if (allocator == ompx_symmetric_mem_alloc) {
            check_symmetric(p);
        }
        omp_free(odd, allocator);
        omp_free(p, allocator);
    }
}

static void freed_pages_are_given_back(omp_allocator_handle_t allocator) {
    size_t const nbytes = 64 * (size_t)MIB;
    size_t const before = segment().resident;
    char *p = omp_alloc(nbytes, allocator);
    CHECK(p != NULL);
    memset(p, 1, nbytes);
    size_t const touched = segment().resident;
    /* A few of its pages may have stayed behind from small blocks. */
    CHECK(touched + MIB >= before + nbytes);
    omp_free(p, allocator);
    CHECK(segment().resident <= touched - nbytes + MIB);
}

static void space_is_used_again(omp_allocator_handle_t allocator) {
    ompx_segment_info_t const before = segment();
    for (int i = 0; i < 1000; ++i) {
        char *p = omp_alloc(MIB, allocator);
        CHECK(p != NULL);
        p[0] = p[MIB - 1] = 1;
        omp_free(p, allocator);
    }
    ompx_segment_info_t const after = segment();
    CHECK(after.largest_free == before.largest_free);
    CHECK(after.num_allocations == before.num_allocations);
    CHECK(after.symmetric_used == before.symmetric_used && after.local_used == before.local_used);
    CHECK(after.resident <= before.resident + MIB);
}

int main(void) {
    me = ompx_rank_num();
    ranks = ompx_num_ranks();
    next = (me + 1) % ranks;
    previous = (me + ranks - 1) % ranks;
    every_call_with(ompx_symmetric_mem_alloc, OMPX_MEM_SYMMETRIC);
    every_call_with(ompx_asymmetric_mem_alloc, OMPX_MEM_ASYMMETRIC);
    every_call_with(ompx_local_mem_alloc, OMPX_MEM_LOCAL);
    reallocation(ompx_symmetric_mem_alloc, OMPX_MEM_SYMMETRIC);
    reallocation(ompx_local_mem_alloc, OMPX_MEM_LOCAL);
    reallocation_between_allocators();
    default_allocator(ompx_symmetric_mem_alloc, OMPX_MEM_SYMMETRIC);
    default_allocator(ompx_asymmetric_mem_alloc, OMPX_MEM_ASYMMETRIC);
#if defined(__clang__)
    pragma_on_a_local_array();
#endif
    openmps_own_allocators();
    omp_allocator_handle_t const all[] = {ompx_symmetric_mem_alloc, ompx_asymmetric_mem_alloc,
                                          ompx_local_mem_alloc};
    for (int i = 0; i < 3; ++i) {
        alignments(all[i]);
        freed_pages_are_given_back(all[i]);
        space_is_used_again(all[i]);
    }
    CHECK(ompx_barrier() == 0);
    return 0;
}
