/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Teams, collectives over teams and over active sets. */
#include "check.h"

#include <complex.h>
#include <string.h>

enum { COUNT = 33 };

static int me, num_pes;
static long sync_words[SHMEM_REDUCE_SYNC_SIZE];
static int static_source[COUNT], static_dest[COUNT];

static void test_predefined(void) {
    EXPECT_EQ(shmem_team_my_pe(SHMEM_TEAM_WORLD), me);
    EXPECT_EQ(shmem_team_n_pes(SHMEM_TEAM_WORLD), num_pes);
    EXPECT_EQ(shmem_team_my_pe(SHMEM_TEAM_INVALID), -1);
    EXPECT_EQ(shmem_team_n_pes(SHMEM_TEAM_INVALID), -1);
    int const num_shared = shmem_team_n_pes(SHMEM_TEAM_SHARED);
    EXPECT(num_shared >= 1 && num_shared <= num_pes);
    int *heap = shmem_malloc(sizeof(int));
    for (int pe = 0; pe < num_shared; ++pe) {
        EXPECT(shmem_team_ptr(SHMEM_TEAM_SHARED, heap, pe) != NULL);
        EXPECT(shmem_team_translate_pe(SHMEM_TEAM_SHARED, pe, SHMEM_TEAM_WORLD) >= 0);
    }
    EXPECT(shmem_team_ptr(SHMEM_TEAM_SHARED, heap, num_shared) == NULL);
    shmem_free(heap);
}

/* Every second PE, backwards. */
static void test_strided(void) {
    int const size = (num_pes + 1) / 2;
    int const start = 2 * (size - 1);
    shmem_team_config_t config = {.num_contexts = 3};
    shmem_team_t team = SHMEM_TEAM_WORLD;
    EXPECT_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, start, -2, size, &config,
                                       SHMEM_TEAM_NUM_CONTEXTS, &team),
              0);
    if (me % 2 != 0) {
        EXPECT(team == SHMEM_TEAM_INVALID);
        shmem_team_destroy(team);
        return;
    }
    EXPECT_EQ(shmem_team_n_pes(team), size);
    EXPECT_EQ(shmem_team_my_pe(team), (start - me) / 2);
    EXPECT_EQ(shmem_team_translate_pe(team, 0, SHMEM_TEAM_WORLD), start);
    EXPECT_EQ(shmem_team_translate_pe(SHMEM_TEAM_WORLD, 1, team), -1);
    EXPECT_EQ(shmem_team_translate_pe(team, size, SHMEM_TEAM_WORLD), -1);
    shmem_team_config_t found = {0};
    EXPECT_EQ(shmem_team_get_config(team, SHMEM_TEAM_NUM_CONTEXTS, &found), 0);
    EXPECT_EQ(found.num_contexts, 3);
    int value = me;
    int sum = -1;
    EXPECT_EQ(shmem_int_sum_reduce(team, &sum, &value, 1), 0);
    EXPECT_EQ(sum, size * (size - 1));
    EXPECT_EQ(shmem_team_sync(team), 0);
    shmem_team_destroy(team);
}

static void test_invalid_splits(void) {
    shmem_team_t team = SHMEM_TEAM_WORLD;
    EXPECT(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, num_pes + 1, NULL, 0, &team) != 0);
    EXPECT(team == SHMEM_TEAM_INVALID);
    EXPECT(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 0, 2, NULL, 0, &team) != 0);
    EXPECT(shmem_team_split_strided(SHMEM_TEAM_WORLD, -1, 1, 1, NULL, 0, &team) != 0);
    EXPECT(shmem_team_split_strided(SHMEM_TEAM_INVALID, 0, 1, 1, NULL, 0, &team) != 0);
}

static void test_split_2d(void) {
    shmem_team_t row = SHMEM_TEAM_INVALID;
    shmem_team_t column = SHMEM_TEAM_INVALID;
    EXPECT_EQ(shmem_team_split_2d(SHMEM_TEAM_WORLD, 2, NULL, 0, &row, NULL, 0, &column), 0);
    int const width = num_pes < 2 ? num_pes : 2;
    EXPECT_EQ(shmem_team_my_pe(row), me % width);
    EXPECT_EQ(shmem_team_my_pe(column), me / width);
    EXPECT_EQ(shmem_team_n_pes(column), (num_pes - me % width + width - 1) / width);
    shmem_team_t of_row = SHMEM_TEAM_INVALID;
    EXPECT_EQ(shmem_team_split_strided(row, 0, 1, 1, NULL, 0, &of_row), 0);
    EXPECT_EQ(shmem_team_n_pes(of_row), me % width == 0 ? 1 : -1);
    shmem_team_destroy(of_row);
    shmem_team_destroy(column);
    shmem_team_destroy(row);
}

static void test_data(int *source, int *dest) {
    for (int i = 0; i < COUNT; ++i) {
        source[i] = 100 * me + i;
        dest[i] = -1;
    }
    shmem_sync_all();
    EXPECT_EQ(shmem_int_broadcast(SHMEM_TEAM_WORLD, dest, source, 3, num_pes - 1), 0);
    EXPECT_EQ(dest[2], 100 * (num_pes - 1) + 2); /* at the root too */
    EXPECT_EQ(dest[3], -1);
    EXPECT_EQ(shmem_int_fcollect(SHMEM_TEAM_WORLD, dest, source, 2), 0);
    EXPECT_EQ(dest[2 * num_pes - 1], 100 * (num_pes - 1) + 1);
    EXPECT_EQ(shmem_int_collect(SHMEM_TEAM_WORLD, dest, source, (size_t)me + 1), 0);
    int at = 0;
    for (int pe = 0; pe < num_pes; ++pe) {
        for (int i = 0; i <= pe; ++i) {
            EXPECT_EQ(dest[at++], 100 * pe + i);
        }
    }
    EXPECT_EQ(shmem_int_alltoall(SHMEM_TEAM_WORLD, dest, source, 2), 0);
    for (int pe = 0; pe < num_pes; ++pe) {
        EXPECT_EQ(dest[2 * pe + 1], 100 * pe + 2 * me + 1);
    }
    for (int pe = 0; pe < num_pes; ++pe) {
        dest[3 * pe + 1] = -5;
    }
    EXPECT_EQ(shmem_int_alltoalls(SHMEM_TEAM_WORLD, dest, source, 3, 2, 1), 0);
    for (int pe = 0; pe < num_pes; ++pe) {
        EXPECT_EQ(dest[3 * pe], 100 * pe + 2 * me);
        EXPECT_EQ(dest[3 * pe + 1], -5);
    }
    EXPECT_EQ(shmem_broadcastmem(SHMEM_TEAM_WORLD, dest, source, 0, 0), 0);
    shmem_sync_all();
}

static void test_reductions(void) {
    long const all = (long)num_pes * (num_pes + 1) / 2;
    long values[2] = {me + 1, -(me + 1)};
    long results[2];
    EXPECT_EQ(shmem_long_max_reduce(SHMEM_TEAM_WORLD, results, values, 2), 0);
    EXPECT_EQ(results[0], num_pes);
    EXPECT_EQ(results[1], -1);
    EXPECT_EQ(shmem_long_min_reduce(SHMEM_TEAM_WORLD, results, values, 2), 0);
    EXPECT_EQ(results[1], -num_pes);
    unsigned char bits = (unsigned char)(1u << me);
    EXPECT_EQ(shmem_uchar_or_reduce(SHMEM_TEAM_WORLD, &bits, &bits, 1), 0); /* in place */
    EXPECT_EQ(bits, (1 << num_pes) - 1);
    uint16_t word = (uint16_t)(0xff00 | me);
    uint16_t common = 0;
    EXPECT_EQ(shmem_uint16_and_reduce(SHMEM_TEAM_WORLD, &common, &word, 1), 0);
    EXPECT_EQ(common, num_pes == 1 ? 0xff00 | me : 0xff00);
    double _Complex z = me + 1 + 2.0 * I;
    double _Complex sum = 0;
    EXPECT_EQ(shmem_complexd_sum_reduce(SHMEM_TEAM_WORLD, &sum, &z, 1), 0);
    EXPECT(creal(sum) == (double)all && cimag(sum) == 2.0 * num_pes);
    long double product = 0;
    long double two = 2;
    EXPECT_EQ(shmem_longdouble_prod_reduce(SHMEM_TEAM_WORLD, &product, &two, 1), 0);
    EXPECT(product == (long double)(1 << num_pes));
    long prefix = -1;
    EXPECT_EQ(shmem_long_sum_inscan(SHMEM_TEAM_WORLD, &prefix, values, 1), 0);
    EXPECT_EQ(prefix, (long)(me + 1) * (me + 2) / 2);
    EXPECT_EQ(shmem_long_sum_exscan(SHMEM_TEAM_WORLD, &prefix, values, 1), 0);
    EXPECT_EQ(prefix, (long)me * (me + 1) / 2);
}

/* PEs 0 and 2, or 0 alone. */
static void test_active_sets(int *source, int *dest) {
    int const size = num_pes > 2 ? 2 : 1;
    for (int i = 0; i < COUNT; ++i) {
        source[i] = 10 * me + i;
        dest[i] = -1;
    }
    shmem_barrier(0, 0, num_pes, sync_words);
    if (me % 2 == 0) {
        for (int round = 0; round < 3; ++round) {
            shmem_broadcast32(dest, source, 2, size - 1, 0, 1, size, sync_words);
            EXPECT_EQ(dest[1], me == 2 * (size - 1) ? -1 : 10 * 2 * (size - 1) + 1);
            shmem_sync(0, 1, size, sync_words);
        }
        shmem_fcollect32(dest, source, 1, 0, 1, size, sync_words);
        EXPECT_EQ(dest[size - 1], 20 * (size - 1));
        shmem_collect64(dest, source, 1, 0, 1, size, sync_words);
        EXPECT_EQ(dest[2 * size - 1], 20 * (size - 1) + 1);
        shmem_alltoall32(dest, source, 1, 0, 1, size, sync_words);
        EXPECT_EQ(dest[0], me / 2);
        shmem_alltoalls32(dest, source, 2, 1, 1, 0, 1, size, sync_words);
        EXPECT_EQ(dest[2 * (size - 1)], 20 * (size - 1) + me / 2);
        shmem_int_sum_to_all(dest, source, 2, 0, 1, size, NULL, sync_words);
        EXPECT_EQ(dest[0], 20 * (size - 1));
        shmem_barrier(0, 1, size, sync_words);
    }
    shmem_int_max_to_all(dest, source, 1, 0, 0, num_pes, NULL, sync_words);
    EXPECT_EQ(dest[0], 10 * (num_pes - 1));
    shmem_barrier_all();
}

int main(void) {
    shmem_init();
    me = shmem_my_pe();
    num_pes = shmem_n_pes();
    test_predefined();
    test_strided();
    test_invalid_splits();
    test_split_2d();
    int *heap = shmem_malloc(2 * COUNT * sizeof(int));
    test_data(heap, heap + COUNT);
    test_data(static_source, static_dest);
    test_reductions();
    test_active_sets(heap, heap + COUNT);
    test_active_sets(static_source, static_dest);
    shmem_free(heap);
    return end_test();
}
