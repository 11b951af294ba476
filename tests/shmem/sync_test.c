/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Atomics, waits, signals and locks, in the heap and in static data. */
#include "check.h"

enum { ROUNDS = 50 };

static long static_counter;
static int static_flag;
static long static_lock;
static long static_locks[3];
static uint64_t static_signal;
static int me, num_pes, next, previous;

static void test_counter(long *counter) {
    *counter = 0;
    shmem_barrier_all();
    long last = -1;
    for (int i = 0; i < ROUNDS; ++i) {
        long const before = shmem_long_atomic_fetch_add(counter, 2, 0);
        EXPECT(before > last);
        last = before;
        shmem_long_atomic_inc(counter, 0);
    }
    shmem_barrier_all();
    EXPECT_EQ(shmem_long_atomic_fetch(counter, 0), 3L * ROUNDS * num_pes);
    shmem_barrier_all();
}

static void test_atomics(long *word, unsigned *bits, double *real) {
    *word = 5;
    *bits = 0xf0u;
    *real = 0.5;
    shmem_barrier_all();
    EXPECT_EQ(shmem_long_atomic_swap(word, 10 + me, next), 5);
    EXPECT_EQ(shmem_long_atomic_compare_swap(word, 5, 1, next), 10 + me);
    EXPECT_EQ(shmem_long_atomic_compare_swap(word, 10 + me, 20, next), 10 + me);
    EXPECT_EQ(shmem_long_atomic_fetch_inc(word, next), 20);
    shmem_long_atomic_add(word, -2, next);
    shmem_quiet();
    EXPECT_EQ(shmem_long_atomic_fetch(word, next), 19);
    EXPECT_EQ(shmem_uint_atomic_fetch_or(bits, 0x0fu, next), 0xf0u);
    EXPECT_EQ(shmem_uint_atomic_fetch_and(bits, 0x3cu, next), 0xffu);
    shmem_uint_atomic_xor(bits, 0x01u, next);
    EXPECT_EQ(shmem_uint_atomic_fetch(bits, next), 0x3du);
    shmem_double_atomic_set(real, 2.25, next);
    EXPECT(shmem_double_atomic_fetch(real, next) == 2.25);
    EXPECT(shmem_double_atomic_swap(real, 4.5, next) == 2.25);
    long before[2] = {0, 0};
    shmem_long_atomic_fetch_add_nbi(&before[0], word, 1, next);
    shmem_quiet();
    EXPECT_EQ(before[0], 19);
    shmem_long_atomic_compare_swap_nbi(&before[1], word, 20, 30, next);
    shmem_quiet();
    EXPECT_EQ(before[1], 20);
    shmem_barrier_all();
    EXPECT_EQ(*word, 30);
    EXPECT(*real == 4.5);
    shmem_barrier_all();
}

static void test_waits(int *flags) {
    for (int i = 0; i < 4; ++i) {
        flags[i] = 0;
    }
    shmem_barrier_all();
    int const skip_first[4] = {1, 0, 0, 0};
    int const wanted[4] = {7, 8, 9, 10};
    size_t found[4];
    EXPECT_EQ(shmem_int_test(&flags[0], SHMEM_CMP_NE, 0), 0);
    EXPECT_EQ(shmem_int_test_any(flags, 4, NULL, SHMEM_CMP_NE, 0), SIZE_MAX);
    EXPECT_EQ(shmem_int_test_some(flags, 4, found, NULL, SHMEM_CMP_NE, 0), 0);
    EXPECT_EQ(shmem_int_test_all(flags, 4, NULL, SHMEM_CMP_EQ, 0), 1);
    EXPECT_EQ(shmem_int_test_all(flags, 0, NULL, SHMEM_CMP_EQ, 1), 1);
    EXPECT_EQ(shmem_int_wait_until_any(flags, 0, NULL, SHMEM_CMP_EQ, 1), SIZE_MAX);
    shmem_barrier_all();
    shmem_int_p(&flags[2], 9, next);
    EXPECT_EQ(shmem_int_wait_until_any(flags, 4, skip_first, SHMEM_CMP_GT, 0), 2);
    EXPECT_EQ(shmem_int_wait_until_some(flags, 4, found, skip_first, SHMEM_CMP_GE, 9), 1);
    EXPECT_EQ(found[0], 2);
    EXPECT_EQ(shmem_int_wait_until_any_vector(flags, 4, NULL, SHMEM_CMP_EQ, wanted), 2);
    shmem_barrier_all();
    shmem_int_atomic_set(&flags[0], 7, next);
    shmem_int_atomic_add(&flags[1], 8, next);
    shmem_int_p(&flags[3], 10, next);
    shmem_int_wait_until_all_vector(flags, 4, NULL, SHMEM_CMP_EQ, wanted);
    EXPECT_EQ(shmem_int_test_some_vector(flags, 4, found, NULL, SHMEM_CMP_LE, wanted), 4);
    EXPECT_EQ(shmem_int_test_all_vector(flags, 4, NULL, SHMEM_CMP_LT, wanted), 0);
    shmem_int_wait_until(&flags[3], SHMEM_CMP_EQ, 10);
    shmem_barrier_all();
}

typedef size_t any_function(int *, size_t, const int *, int, int);
typedef size_t any_vector_function(int *, size_t, const int *, int, const int *);

/* A series of calls returns each element that fulfils the comparison, and no other. */
static void test_any_is_fair(any_function *any, any_vector_function *any_vector) {
    static int flags[6];
    static const int skip[6] = {0, 1, 0, 0, 0, 0};
    static const int wanted[6] = {1, 1, 7, 1, 1, 0};
    int counts[6] = {0};
    int counts_of_vector[6] = {0};
    for (int i = 0; i < 6; ++i) {
        flags[i] = i < 5;
    }
    for (int call = 0; call < 2000; ++call) {
        size_t const one = any(flags, 6, skip, SHMEM_CMP_EQ, 1);
        size_t const other = any_vector(flags, 6, skip, SHMEM_CMP_EQ, wanted);
        if (one >= 6 || other >= 6) {
            EXPECT(one < 6 && other < 6);
            return;
        }
        ++counts[one];
        ++counts_of_vector[other];
    }
    EXPECT(counts[0] > 0 && counts[2] > 0 && counts[3] > 0 && counts[4] > 0);
    EXPECT(counts[1] == 0 && counts[5] == 0);
    EXPECT(counts_of_vector[0] > 0 && counts_of_vector[3] > 0 && counts_of_vector[4] > 0 &&
           counts_of_vector[5] > 0);
    EXPECT(counts_of_vector[1] == 0 && counts_of_vector[2] == 0);
    shmem_barrier_all();
}

static void test_signals(long *data, uint64_t *signal) {
    long source[8];
    *signal = 0;
    shmem_barrier_all();
    for (uint64_t round = 1; round <= ROUNDS; ++round) {
        for (int i = 0; i < 8; ++i) {
            source[i] = 1000 * me + 10 * (long)round + i;
        }
        if (round % 2 == 0) {
            shmem_long_put_signal(data, source, 8, signal, 1, SHMEM_SIGNAL_ADD, next);
        } else {
            shmem_long_put_signal_nbi(data, source, 8, signal, round, SHMEM_SIGNAL_SET, next);
        }
        EXPECT_EQ(shmem_signal_wait_until(signal, SHMEM_CMP_GE, round), round);
        EXPECT_EQ(data[7], 1000 * previous + 10 * (long)round + 7);
        shmem_barrier_all();
    }
    EXPECT_EQ(shmem_signal_fetch(signal), ROUNDS);
    shmem_barrier_all();
    shmem_signal_add(signal, 3, next);
    shmem_signal_wait_until(signal, SHMEM_CMP_EQ, ROUNDS + 3);
    shmem_barrier_all();
    shmem_signal_set(signal, 1, next);
    shmem_signal_wait_until(signal, SHMEM_CMP_EQ, 1);
    shmem_barrier_all();
}

/* The value is incremented by a get and a put, which only the lock makes atomic. */
static void test_lock(long *lock, long *value) {
    *value = 0;
    shmem_barrier_all();
    for (int i = 0; i < ROUNDS; ++i) {
        if (i % 3 == 0) {
            while (shmem_test_lock(lock) != 0) {
            }
        } else {
            shmem_set_lock(lock);
        }
        long const before = shmem_long_g(value, num_pes - 1);
        shmem_long_p(value, before + 1, num_pes - 1);
        shmem_clear_lock(lock);
    }
    shmem_barrier_all();
    EXPECT_EQ(shmem_long_g(value, num_pes - 1), (long)ROUNDS * num_pes);
    if (me == 0) {
        shmem_set_lock(lock);
    }
    shmem_barrier_all();
    EXPECT_EQ(shmem_test_lock(lock), 1);
    shmem_barrier_all();
    if (me == 0) {
        shmem_clear_lock(lock);
    }
    shmem_barrier_all();
    EXPECT_EQ(*lock, 0);
    shmem_barrier_all();
}

int main(void) {
    int provided = -1;
    if (shmem_init_thread(SHMEM_THREAD_MULTIPLE + 1, &provided) == 0) {
        return 1;
    }
    if (shmem_init_thread(SHMEM_THREAD_FUNNELED, &provided) != 0 ||
        provided < SHMEM_THREAD_FUNNELED) {
        return 1;
    }
    me = shmem_my_pe();
    num_pes = shmem_n_pes();
    next = (me + 1) % num_pes;
    previous = (me + num_pes - 1) % num_pes;
    static unsigned bits;
    static double real;
    static int flags[4];
    static long words[8];
    long *heap = shmem_calloc(64, sizeof(long));
    test_counter(&heap[0]);
    test_counter(&static_counter);
    test_atomics(&heap[0], (unsigned *)&heap[1], (double *)&heap[2]);
    test_atomics(&static_counter, &bits, &real);
    test_waits((int *)&heap[8]);
    test_waits(flags);
    test_any_is_fair(shmem_int_test_any, shmem_int_test_any_vector);
    test_any_is_fair(shmem_int_wait_until_any, shmem_int_wait_until_any_vector);
    test_signals(&heap[16], (uint64_t *)&heap[3]);
    test_signals(words, &static_signal);
    test_lock(&heap[4], &heap[5]);
    test_lock(&static_lock, &static_counter);
    test_lock(&static_locks[1], &heap[5]);
    EXPECT_EQ(static_locks[0] | static_locks[2] | static_flag, 0);
    shmem_free(heap);
    return end_test();
}
