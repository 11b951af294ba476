/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Start, memory and transfers, in the heap and in static data. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

enum { COUNT = 1000 };

static int static_ints[COUNT];            /* .bss */
static long static_long = 17;             /* .data */
static long double static_long_double[2]; /* 16 bytes */
static int me, num_pes, next, previous;

static void test_queries(void) {
    int value = -1;
    int minor = -1;
    char name[SHMEM_MAX_NAME_LEN];
    EXPECT(me >= 0 && me < num_pes);
    shmem_query_initialized(&value);
    EXPECT_EQ(value, 1);
    shmem_query_thread(&value);
    EXPECT_EQ(value, SHMEM_THREAD_MULTIPLE);
    shmem_info_get_version(&value, &minor);
    EXPECT_EQ(value, 1);
    EXPECT_EQ(minor, 6);
    shmem_info_get_name(name);
    EXPECT_EQ(strcmp(name, SHMEM_VENDOR_STRING), 0);
    EXPECT_EQ(shmem_pe_accessible(num_pes - 1), 1);
    EXPECT_EQ(shmem_pe_accessible(num_pes), 0);
    EXPECT_EQ(shmem_pe_accessible(-1), 0);
}

static void test_memory(void) {
    EXPECT(shmem_malloc(0) == NULL);
    EXPECT(shmem_calloc(0, 8) == NULL);
    EXPECT(shmem_calloc((size_t)-1, 16) == NULL);
    EXPECT(shmem_align(3, 64) == NULL);
    EXPECT(shmem_malloc((size_t)1 << 50) == NULL); /* more than the heap, which is no failure */
    char *aligned = shmem_align(4, 64);            /* of less than a pointer, which programs use */
    EXPECT(aligned != NULL);
    shmem_free(aligned);
    aligned = shmem_align(4096, 100);
    EXPECT_EQ((uintptr_t)aligned % 4096, 0);
    int *block = shmem_calloc(COUNT, sizeof(int));
    EXPECT_EQ(block[0] | block[COUNT - 1], 0);
    block[7] = me + 1;
    block = shmem_realloc(block, 100 * COUNT * sizeof(int));
    EXPECT_EQ(block[7], me + 1);
    EXPECT_EQ(shmem_int_g(&block[7], next), next + 1);
    EXPECT(shmem_realloc(block, 0) == NULL);
    block = shmem_realloc(NULL, 64);
    EXPECT(block != NULL);
    shmem_free(block);
    shmem_free(NULL);
    shmem_free(aligned);
}

static void test_addresses(int *heap) {
    int local = 0;
    EXPECT_EQ(shmem_addr_accessible(heap, next), 1);
    EXPECT_EQ(shmem_addr_accessible(&static_long, next), 1);
    EXPECT_EQ(shmem_addr_accessible(&static_ints[COUNT - 1], next), 1);
    EXPECT_EQ(shmem_addr_accessible(&local, next), 0);
    EXPECT_EQ(shmem_addr_accessible(heap, num_pes), 0);
    EXPECT(shmem_ptr(heap, me) == heap);
    EXPECT(shmem_ptr(static_ints, me) == static_ints);
    EXPECT(shmem_ptr(heap, num_pes) == NULL);
    EXPECT(shmem_ptr(&local, next) == NULL);
    int *there = shmem_ptr(heap, next); /* NULL on another node */
    shmem_int_p(heap, 100 + me, next);
    shmem_barrier_all();
    if (there != NULL) {
        EXPECT_EQ(*there, 100 + me);
    }
    EXPECT_EQ(*heap, 100 + previous);
    shmem_barrier_all();
}

/* Blocking and non-blocking transfers of an array. */
static void test_blocks(int *remote) {
    int source[COUNT];
    int dest[COUNT];
    for (int i = 0; i < COUNT; ++i) {
        source[i] = 1000 * me + i;
    }
    shmem_int_put(remote, source, COUNT, next);
    shmem_barrier_all();
    EXPECT_EQ(remote[0], 1000 * previous);
    EXPECT_EQ(remote[COUNT - 1], 1000 * previous + COUNT - 1);
    memset(dest, 0, sizeof(dest));
    shmem_int_get(dest, remote, COUNT, next);
    EXPECT_EQ(dest[COUNT - 1], 1000 * me + COUNT - 1);
    shmem_barrier_all();
    for (int i = 0; i < COUNT; ++i) {
        source[i] = -source[i];
    }
    shmem_putmem_nbi(remote, source, sizeof(source), next);
    shmem_quiet();
    shmem_sync_all();
    EXPECT_EQ(remote[COUNT - 1], -(1000 * previous + COUNT - 1));
    shmem_get32_nbi(dest, remote, COUNT, next);
    shmem_quiet();
    EXPECT_EQ(dest[COUNT - 1], -(1000 * me + COUNT - 1));
    shmem_int_put(remote, source, 0, next); /* nothing */
    shmem_barrier_all();
}

static void test_strides(int *remote) {
    int source[12];
    int dest[12];
    for (int i = 0; i < 12; ++i) {
        source[i] = 100 * me + i;
        remote[i] = -1;
    }
    shmem_barrier_all();
    shmem_int_iput(remote, source, 3, 2, 4, next); /* 0 2 4 6 to 0 3 6 9 */
    shmem_barrier_all();
    for (int i = 0; i < 12; ++i) {
        EXPECT_EQ(remote[i], i % 3 == 0 ? 100 * previous + i / 3 * 2 : -1);
        dest[i] = -2;
    }
    shmem_iget32(dest, remote, 1, 3, 4, next);
    for (int i = 0; i < 12; ++i) {
        EXPECT_EQ(dest[i], i < 4 ? 100 * me + 2 * i : -2);
    }
    shmem_barrier_all();
    shmem_int_ibput(remote, source, 5, 3, 2, 2, next); /* 0 1, 3 4 to 0 1, 5 6 */
    shmem_barrier_all();
    EXPECT_EQ(remote[1], 100 * previous + 1);
    EXPECT_EQ(remote[2], -1);
    EXPECT_EQ(remote[5], 100 * previous + 3);
    EXPECT_EQ(remote[6], 100 * previous + 4);
    shmem_int_ibget(dest, remote, 3, 5, 2, 2, next);
    EXPECT_EQ(dest[0], 100 * me);
    EXPECT_EQ(dest[3], 100 * me + 3);
    EXPECT_EQ(dest[4], 100 * me + 4);
    shmem_barrier_all();
}

static void test_single_values(void) {
    shmem_long_p(&static_long, 40 + me, next);
    shmem_longdouble_p(&static_long_double[1], 0.5L + me, next);
    shmem_barrier_all();
    EXPECT_EQ(static_long, 40 + previous);
    EXPECT(static_long_double[1] == 0.5L + previous);
    EXPECT_EQ(shmem_long_g(&static_long, next), 40 + me);
    EXPECT(shmem_longdouble_g(&static_long_double[1], next) == 0.5L + me);
    shmem_barrier_all();
}

/* What is put before a fence is seen before what is put after it. */
static void test_fence(int *remote) {
    static int flag;
    for (int round = 1; round <= 100; ++round) {
        for (int i = 0; i < 16; ++i) {
            shmem_int_p(&remote[i], round, next);
        }
        shmem_fence();
        shmem_int_p(&flag, round, next);
        shmem_int_wait_until(&flag, SHMEM_CMP_EQ, round);
        for (int i = 0; i < 16; ++i) {
            EXPECT_EQ(remote[i], round);
        }
        shmem_barrier_all();
    }
}

int main(void) {
    int is_started = -1;
    shmem_query_initialized(&is_started);
    shmem_init();
    EXPECT_EQ(is_started, 0);
    EXPECT_EQ(static_long, 17);
    me = shmem_my_pe();
    num_pes = shmem_n_pes();
    next = (me + 1) % num_pes;
    previous = (me + num_pes - 1) % num_pes;
    test_queries();
    test_memory();
    int *heap = shmem_malloc(COUNT * sizeof(int));
    test_addresses(heap);
    test_blocks(heap);
    test_blocks(static_ints);
    test_strides(heap);
    test_strides(static_ints);
    test_single_values();
    test_fence(heap);
    test_fence(static_ints);
    shmem_init(); /* counted */
    shmem_finalize();
    EXPECT_EQ(shmem_n_pes(), num_pes);
    shmem_free(heap);
    return end_test();
}
