/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Calls of DiOMP inside target regions: on host devices and remote ones, and on GPUs in
 * scripts/gpu-check.sh. Runs with DIOMP_ERRORS=return.
 *
 * Without an argument: all but what needs regions of several ranks to run at the same time.
 *
 * "together": these, too.
 *
 * "timeout": waits that never become true; DIOMP_TIMEOUT is set.
 */
#include "offload/on_gpu.h"
#include "support/check.h"

#include <omp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 1 << 18, WORDS = BYTES / 8, THREADS = 128 };

static int me, ranks, next, previous, on_gpu, on_remote;
static char *source, *target; /* symmetric memory of the default device, BYTES each */
static uint64_t *signals;     /* 64 of them */

static void meet(void) {
    CHECK(ompx_fence() == 0);
    CHECK(ompx_barrier() == 0);
}

/* Whether a sentence of the host or one of a GPU was reported. */
#define SAYS(on_host, by_gpu)                                                                      \
    CHECK(strstr(ompx_last_error(), on_gpu ? (by_gpu) : (on_host)) != NULL)

static void *allocate(size_t nbytes) {
    void *made = ompx_target_alloc(nbytes, omp_get_default_device(), ompx_symmetric_mem_alloc);
    CHECK(made != NULL);
    return made;
}

static void set_signals(uint64_t value) {
    uint64_t *const at = signals;
#pragma omp target is_device_ptr(at)
    for (int i = 0; i < 64; ++i) {
        at[i] = value;
    }
    meet();
}

static void find_out_where(void) {
    int on_host = 1;
    int numbers[4] = {-1, -1, -1, -1};
#pragma omp target map(from : on_host) map(tofrom : numbers)
    {
        on_host = omp_is_initial_device();
        numbers[0] = ompx_rank_num();
        numbers[1] = ompx_num_ranks();
        numbers[2] = ompx_get_rank_num();
        numbers[3] = ompx_get_num_ranks();
    }
    CHECK(on_host == 0);
    on_gpu = regions_run_on_gpu();
    on_remote = getenv("DIOMP_REMOTE_DEVICES") != NULL;
    CHECK(numbers[0] == me && numbers[1] == ranks && numbers[2] == me && numbers[3] == ranks);
}

static char byte_of(int rank, size_t i) { return (char)(rank * 37 + (int)(i % 251) + 1); }

static void fill(int rank) {
    char *const from = source;
    char *const to = target;
#pragma omp target teams distribute parallel for is_device_ptr(from, to)
    for (int i = 0; i < BYTES; ++i) {
        from[i] = (char)(rank * 37 + i % 251 + 1);
        to[i] = 0;
    }
    meet();
}

/* [begin, begin + nbytes) of the target holds the source's bytes of `rank` from `from` on, and the
 * bytes beside it are 0. */
static void holds(int rank, size_t begin, size_t nbytes, size_t from) {
    char *copy = malloc(BYTES);
    CHECK(omp_target_memcpy(copy, target, BYTES, 0, 0, omp_get_initial_device(),
                            omp_get_default_device()) == 0);
    for (size_t i = 0; i < nbytes; ++i) {
        CHECK(copy[begin + i] == byte_of(rank, from + i));
    }
    CHECK(begin == 0 || copy[begin - 1] == 0);
    CHECK(copy[begin + nbytes] == 0);
    free(copy);
}

static void transfers(void) {
    static const size_t sizes[] = {0, 1, 2, 3, 4, 7, 8, 9, 16, 31, 64, 100, 4096, 100003};
    for (size_t n = 0; n < sizeof(sizes) / sizeof(sizes[0]); ++n) {
        size_t const nbytes = sizes[n];
        size_t const to = 16 + (n * 5) % 16;
        size_t const from = 32 + (n * 3) % 16;
        char *const out = target + to;
        char *const in = source + from;
        int const right = next;
        int status[4] = {1, 1, 1, 1};
        fill(me);
#pragma omp target is_device_ptr(out, in) map(from : status)
        {
            ompx_event_t event = NULL;
            status[0] = ompx_put(right, out, in, nbytes);
            status[1] = ompx_put_nb(right, out, in, nbytes, &event);
            status[2] = ompx_event_wait(&event);
            status[3] = ompx_fence();
        }
        CHECK(status[0] == 0 && status[1] == 0 && status[2] == 0 && status[3] == 0);
        meet();
        holds(previous, to, nbytes, from);
        meet();
        fill(me);
#pragma omp target is_device_ptr(out, in) map(from : status)
        {
            ompx_event_t event = NULL;
            int done = 0;
            status[0] = ompx_get(out, right, in, nbytes);
            status[1] = ompx_get_nb(out, right, in, nbytes, &event);
            status[2] = ompx_event_test(&event, &done);
            status[3] = ompx_waitALLRMA();
            ompx_event_wait(&event);
        }
        CHECK(status[0] == 0 && status[1] == 0 && status[2] == 0 && status[3] == 0);
        holds(next, to, nbytes, from);
        meet();
    }
}

static int session_node_size(void) {
    char const *const network = getenv("DIOMP_NETWORK"), *const conduit = getenv("DIOMP_CONDUIT");
    char const *const size = getenv("DIOMP_NODE_SIZE"), *const confined = getenv("CONFINED");
    int const is_apart = (network != NULL && strcmp(network, "ucx") == 0) || confined != NULL ||
                         (conduit != NULL && strcmp(conduit, "tcp") == 0);
    return is_apart ? 1 : size == NULL ? ranks : atoi(size);
}

/* Variables of the region itself as the local side, and memory that OpenMP has mapped. */
static void other_memory(void) {
    void *const host = ompx_alloc(8, 0, OMPX_MEM_SYMMETRIC);
    static int64_t mapped[4];
    int const right = next, self = me;
    /* a rank of this node; sessions may be nodes of their own where the ranks share memory */
    int const is_near = on_remote ? me / session_node_size() == right / session_node_size()
                                  : ompx_remote_ptr(host, right) != NULL;
    int status[3] = {1, 1, 1};
    int64_t got = 0;
    memset(mapped, 0, sizeof(mapped));
#pragma omp target enter data map(to : mapped)
    meet();
#pragma omp target map(from : status)
    {
        int64_t value = 1000 + self;
        status[0] = ompx_put(right, &mapped[2], &value, sizeof(value));
    }
    CHECK(status[0] == 0);
    meet();
#pragma omp target map(from : status, got)
    {
        int64_t value = 0;
        status[1] = ompx_get(&value, right, &mapped[2], sizeof(value));
        got = value;
        int64_t *const direct = ompx_remote_ptr(&mapped[2], right);
        status[2] = is_near ? direct == NULL || *direct != value : direct != NULL;
    }
    CHECK(status[1] == 0 && got == 1000 + me && status[2] == 0);
    meet();
#pragma omp target update from(mapped)
    CHECK(mapped[1] == 0 && mapped[2] == 1000 + previous && mapped[3] == 0);
    meet();
#pragma omp target exit data map(release : mapped)
    CHECK(ompx_free(host) == 0);
}

static void by_teams(void) {
    static const size_t sizes[] = {0, 5, 8, 100, 4096, 4099, 200000};
    for (size_t n = 0; n < sizeof(sizes) / sizeof(sizes[0]); ++n) {
        size_t const nbytes = sizes[n];
        size_t const to = 16 + (n * 7) % 16;
        char *const out = target + to;
        char *const in = source + 32;
        uint64_t *const signal = signals;
        int const right = next, self = me;
        int wrong = 0;
        fill(me);
        set_signals(0);
#pragma omp target teams num_teams(1) thread_limit(THREADS) is_device_ptr(out, in, signal)         \
    map(tofrom : wrong)
#pragma omp parallel num_threads(THREADS) reduction(+ : wrong)
        {
            wrong += ompx_team_put(right, out, in, nbytes) != 0;
            wrong += ompx_fence() != 0;
        }
        CHECK(wrong == 0);
        meet();
        holds(previous, to, nbytes, 32);
        meet();
        fill(me);
#pragma omp target teams num_teams(1) thread_limit(THREADS) is_device_ptr(out, in, signal)         \
    map(tofrom : wrong)
#pragma omp parallel num_threads(THREADS) reduction(+ : wrong)
        {
            wrong += ompx_team_get(out, right, in, nbytes) != 0;
            /* What all threads have fetched is there for each of them. */
            wrong += nbytes != 0 && out[0] != (char)(right * 37 + 32 + 1);
            wrong += nbytes != 0 &&
                     out[nbytes - 1] != (char)(right * 37 + (int)((nbytes + 31) % 251) + 1);
        }
        CHECK(wrong == 0);
        holds(next, to, nbytes, 32);
        meet();
        fill(me);
        /* To this rank itself, whose threads then wait. */
#pragma omp target teams num_teams(1) thread_limit(THREADS) is_device_ptr(out, in, signal)         \
    map(tofrom : wrong)
#pragma omp parallel num_threads(THREADS) reduction(+ : wrong)
        {
            wrong += ompx_team_put_signal(self, out, in, nbytes, signal, 3, OMPX_SIGNAL_ADD) != 0;
            wrong += ompx_signal_wait(signal, OMPX_CMP_EQ, 3) != 0;
            wrong += nbytes != 0 &&
                     out[nbytes - 1] != (char)(self * 37 + (int)((nbytes + 31) % 251) + 1);
        }
        CHECK(wrong == 0);
        holds(me, to, nbytes, 32);
        meet();
    }
}

/* A signal to the next rank; the host's barrier comes before that rank looks. */
static void signalled(void) {
    char *const out = target;
    char *const in = source;
    uint64_t *const signal = signals;
    int const right = next;
    int status[4] = {1, 1, 1, 1};
    fill(me);
    set_signals(5);
#pragma omp target is_device_ptr(out, in, signal) map(from : status)
    {
        status[0] = ompx_put_signal(right, out, in, 1000, &signal[1], 77, OMPX_SIGNAL_SET);
        status[1] = ompx_put_signal(right, out, in, 0, &signal[2], 2, OMPX_SIGNAL_ADD);
        status[2] = ompx_put_signal(right, out, in, 0, &signal[2], 3, OMPX_SIGNAL_ADD);
    }
    CHECK(status[0] == 0 && status[1] == 0 && status[2] == 0);
    meet();
#pragma omp target is_device_ptr(signal) map(from : status)
    {
        status[0] = ompx_signal_wait(&signal[1], OMPX_CMP_EQ, 77);
        status[1] = ompx_signal_wait(&signal[2], OMPX_CMP_GE, 10);
        status[2] = ompx_signal_test(&signal[2], OMPX_CMP_GT, 10);
        status[3] = ompx_signal_test(&signal[2], OMPX_CMP_LE, 10);
    }
    CHECK(status[0] == 0 && status[1] == 0 && status[2] == 0 && status[3] == 1);
    holds(previous, 0, 1000, 0);
    meet();
}

static void waits_until(void) {
    uint64_t *const at = signals;
    int wrong = 0;
    set_signals((uint64_t)-5);
#pragma omp target is_device_ptr(at) map(tofrom : wrong)
    {
        int32_t value_i32 = -5;
        uint32_t value_u32 = 0xfffffffbu;
        int64_t value_i64 = -4;
        uint64_t value_u64 = 7;
        wrong += ompx_wait_until(at, OMPX_INT32, OMPX_CMP_EQ, &value_i32) != 0;
        wrong += ompx_wait_until(at, OMPX_UINT32, OMPX_CMP_EQ, &value_u32) != 0;
        wrong += ompx_wait_until(at, OMPX_INT64, OMPX_CMP_LT, &value_i64) != 0;
        wrong += ompx_wait_until(at, OMPX_UINT64, OMPX_CMP_GT, &value_u64) != 0;
        value_i32 = 3;
        wrong += ompx_wait_until(at, OMPX_INT32, OMPX_CMP_LE, &value_i32) != 0;
        wrong += ompx_wait_until(at, OMPX_INT32, OMPX_CMP_NE, &value_i32) != 0;
        value_u32 = 3;
        wrong += ompx_wait_until(at, OMPX_UINT32, OMPX_CMP_GE, &value_u32) != 0;
        const char *const bytes = (const char *)at;
        int8_t value_i8 = -5;
        uint8_t value_u8 = 250;
        int16_t value_i16 = -4;
        uint16_t value_u16 = 0xffff;
        wrong += ompx_wait_until(bytes, OMPX_INT8, OMPX_CMP_EQ, &value_i8) != 0;
        wrong += ompx_wait_until(bytes + 1, OMPX_INT8, OMPX_CMP_GT, &value_i8) != 0;
        wrong += ompx_wait_until(bytes + 3, OMPX_UINT8, OMPX_CMP_GT, &value_u8) != 0;
        wrong += ompx_wait_until(bytes, OMPX_INT16, OMPX_CMP_LT, &value_i16) != 0;
        wrong += ompx_wait_until(bytes + 6, OMPX_UINT16, OMPX_CMP_EQ, &value_u16) != 0;
    }
    CHECK(wrong == 0);
    meet();
}

/* One operation on the next rank's cell, which holds `before`; all ranks do the same. */
#define ATOMIC(type_, kind, op_, before, operand_, after)                                          \
    do {                                                                                           \
        kind *const cell = (kind *)(void *)signals;                                                \
        int status_ = 1;                                                                           \
        kind old_ = 0, now_ = 0;                                                                   \
        _Pragma("omp target is_device_ptr(cell)") { *cell = (before); }                            \
        meet();                                                                                    \
        _Pragma("omp target is_device_ptr(cell) map(from : status_, old_)") {                      \
            kind operand = (operand_);                                                             \
            kind old = 0;                                                                          \
            status_ = ompx_atomic_fetch(right, cell, &operand, &old, type_, op_);                  \
            old_ = old;                                                                            \
        }                                                                                          \
        meet();                                                                                    \
        _Pragma("omp target is_device_ptr(cell) map(from : now_)") { now_ = *cell; }               \
        CHECK(status_ == 0);                                                                       \
        CHECK(old_ == (kind)(before));                                                             \
        CHECK(now_ == (kind)(after));                                                              \
        meet();                                                                                    \
    } while (0)
#define ATOMIC_ARITHMETIC(type_, kind)                                                             \
    ATOMIC(type_, kind, OMPX_SUM, 40, 2, 42);                                                      \
    ATOMIC(type_, kind, OMPX_MIN, 40, 2, 2);                                                       \
    ATOMIC(type_, kind, OMPX_MIN, 2, 40, 2);                                                       \
    ATOMIC(type_, kind, OMPX_MAX, 40, 2, 40);                                                      \
    ATOMIC(type_, kind, OMPX_MAX, 2, 40, 40);                                                      \
    ATOMIC(type_, kind, OMPX_REPLACE, 40, 2, 2);                                                   \
    ATOMIC(type_, kind, OMPX_NO_OP, 40, 2, 40)
#define ATOMIC_BITS(type_, kind)                                                                   \
    ATOMIC(type_, kind, OMPX_BAND, 12, 10, 8);                                                     \
    ATOMIC(type_, kind, OMPX_BOR, 12, 10, 14);                                                     \
    ATOMIC(type_, kind, OMPX_BXOR, 12, 10, 6)

static void atomics(void) {
    int const right = next;
    ATOMIC_ARITHMETIC(OMPX_INT32, int32_t);
    ATOMIC_ARITHMETIC(OMPX_UINT32, uint32_t);
    ATOMIC_ARITHMETIC(OMPX_INT64, int64_t);
    ATOMIC_ARITHMETIC(OMPX_UINT64, uint64_t);
    ATOMIC_ARITHMETIC(OMPX_FLOAT, float);
    ATOMIC_ARITHMETIC(OMPX_DOUBLE, double);
    ATOMIC_BITS(OMPX_INT32, int32_t);
    ATOMIC_BITS(OMPX_UINT32, uint32_t);
    ATOMIC_BITS(OMPX_INT64, int64_t);
    ATOMIC_BITS(OMPX_UINT64, uint64_t);
    ATOMIC(OMPX_INT32, int32_t, OMPX_MIN, -3, 2, -3);
    ATOMIC(OMPX_INT64, int64_t, OMPX_MAX, -3, 2, 2);
    ATOMIC(OMPX_DOUBLE, double, OMPX_MIN, -2.5, 1.0, -2.5);
    ATOMIC(OMPX_FLOAT, float, OMPX_SUM, 0.5f, 0.25f, 0.75f);
}

static void compare_and_swap(void) {
    int const right = next;
    uint64_t *const at = signals;
    int status[4] = {1, 1, 1, 1};
    int64_t old[2] = {0, 0};
    set_signals(9);
#pragma omp target is_device_ptr(at) map(from : status, old)
    {
        int64_t expected = 8, desired = 10, seen = 0;
        int32_t narrow = 9, replaced = 11, narrow_seen = 0;
        status[0] = ompx_atomic_compare_swap(right, &at[0], &expected, &desired, &seen, OMPX_INT64);
        old[0] = seen;
        expected = 9;
        status[1] = ompx_atomic_compare_swap(right, &at[1], &expected, &desired, &seen, OMPX_INT64);
        old[1] = seen;
        status[2] =
            ompx_atomic_compare_swap(right, &at[2], &narrow, &replaced, &narrow_seen, OMPX_INT32);
        status[3] = narrow_seen != 9;
    }
    CHECK(status[0] == 0 && status[1] == 0 && status[2] == 0 && status[3] == 0);
    CHECK(old[0] == 9 && old[1] == 9);
    meet();
    uint64_t now[3];
    CHECK(omp_target_memcpy(now, at, sizeof(now), 0, 0, omp_get_initial_device(),
                            omp_get_default_device()) == 0);
    CHECK(now[0] == 9 && now[1] == 10 && now[2] == 11);
    meet();
}

/* Many threads of all ranks on three cells of rank 0. */
static void contended(void) {
    enum { TEAMS = 4, EACH = 25 };
    uint64_t *const at = signals;
    int wrong = 0;
    set_signals(0);
#pragma omp target teams num_teams(TEAMS) thread_limit(THREADS) is_device_ptr(at)                  \
    map(tofrom : wrong) reduction(+ : wrong)
#pragma omp parallel num_threads(THREADS) reduction(+ : wrong)
    for (int i = 0; i < EACH; ++i) {
        uint64_t one = 1;
        double half = 0.5;
        float two = 2;
        wrong += ompx_atomic_add(0, &at[0], &one, OMPX_UINT64) != 0;
        wrong += ompx_atomic_add(0, &at[8], &half, OMPX_DOUBLE) != 0;
        wrong += ompx_atomic_add(0, &at[16], &two, OMPX_FLOAT) != 0;
        wrong += ompx_put_signal(0, at, at, 0, &at[24], 1, OMPX_SIGNAL_ADD) != 0;
        wrong += ompx_fence() != 0;
    }
    CHECK(wrong == 0);
    meet();
    uint64_t now[32];
    CHECK(omp_target_memcpy(now, at, sizeof(now), 0, 0, omp_get_initial_device(),
                            omp_get_default_device()) == 0);
    if (me == 0) {
        double halves;
        float twos;
        memcpy(&halves, &now[8], sizeof(halves));
        memcpy(&twos, &now[16], sizeof(twos));
        /* The region may have fewer threads than it asks for. */
        uint64_t const count = now[0];
        CHECK(count != 0 && count % EACH == 0);
        CHECK(halves == 0.5 * (double)count && (double)twos == 2.0 * (double)count);
        CHECK(now[24] == count);
    }
    meet();
}

/* Regions of neighbours that wait for one another: rank r sends round i to the right when it has
 * received round i from the left. */
static void together(void) {
    enum { ROUNDS = 200, PAYLOAD = 1000 };
    char *const out = target;
    char *const in = source;
    uint64_t *const signal = signals;
    int const right = next, left = previous, self = me;
    int wrong = 0;
    fill(me);
    set_signals(0);
#pragma omp target is_device_ptr(out, in, signal) map(tofrom : wrong)
    for (uint64_t round = 1; round <= ROUNDS; ++round) {
        size_t const nbytes = (size_t)(round * 5 % PAYLOAD) + 1;
        in[nbytes - 1] = (char)(self + (int)round);
        wrong += ompx_put_signal(right, out, in, nbytes, &signal[0], round, OMPX_SIGNAL_SET) != 0;
        wrong += ompx_signal_wait(&signal[0], OMPX_CMP_GE, round) != 0;
        wrong += *(volatile char *)&out[nbytes - 1] != (char)(left + (int)round);
        /* The left one may send the next round now. */
        wrong += ompx_put_signal(left, out, in, 0, &signal[8], 1, OMPX_SIGNAL_ADD) != 0;
        wrong += ompx_signal_wait(&signal[8], OMPX_CMP_GE, round) != 0;
    }
    CHECK(wrong == 0);
    meet();
}

/* Barriers of all ranks by the threads that run their regions, and of what each rank puts before
 * them. */
static void barriers(void) {
    enum { ROUNDS = 200 };
    uint64_t *const at = signals;
    int const right = next;
    int wrong = 0;
    set_signals(0);
#pragma omp target is_device_ptr(at) map(tofrom : wrong)
    for (uint64_t round = 1; round <= ROUNDS; ++round) {
        wrong += ompx_put(right, at, &round, sizeof(round)) != 0;
        wrong += ompx_barrier() != 0; /* includes the fence */
        wrong += *(volatile uint64_t *)at != round;
        wrong += ompx_barrier() != 0; /* all have looked */
    }
    CHECK(wrong == 0);
    meet();
}

/* Barriers of the ranks with odd and even numbers, and of all in another order. The host calls the
 * second group before regions call any. */
static void barriers_of_groups(void) {
    enum { ROUNDS = 100 };
    uint64_t *const at = signals;
    ompx_group_t half, reversed;
    int const second = (me + 2) % ranks % 2 == me % 2 ? (me + 2) % ranks : me;
    int const is_written = second == me || (me + 2 * ranks - 2) % ranks % 2 == me % 2;
    int wrong = 0;
    CHECK(ompx_group_split(ompx_group_world, me % 2, me, &half) == 0);
    CHECK(ompx_group_split(ompx_group_world, 0, -me, &reversed) == 0);
    set_signals(0);
    CHECK(ompx_target_bcast_from(at, omp_get_default_device(), sizeof(*at), 0, reversed) == 0);
    meet();
#pragma omp target is_device_ptr(at) map(tofrom : wrong)
    for (uint64_t round = 1; round <= ROUNDS; ++round) {
        wrong += ompx_put(second, at, &round, sizeof(round)) != 0;
        wrong += ompx_barrier_group(half) != 0;
        wrong += is_written && *(volatile uint64_t *)at != round;
        wrong += ompx_barrier_group(reversed) != 0;
    }
    CHECK(wrong == 0);
    meet();
    ompx_group_t const freed = half;
    CHECK(ompx_group_free(&half) == 0 && ompx_group_free(&reversed) == 0);
    wrong = 0;
#pragma omp target map(from : wrong)
    wrong = ompx_barrier_group(freed);
    CHECK(wrong == OMPX_ERR_ARG);
    CHECK(strstr(ompx_last_error(), "is not a group") != NULL);
}

/* Barriers of groups that come and go, and of a group of the ranks' devices: more than a GPU knows
 * at a time. */
static void barriers_of_new_groups(void) {
    enum { ROUNDS = 300 };
    ompx_endpoint_t *const list = malloc((size_t)ranks * sizeof(*list));
    for (int rank = 0; rank < ranks; ++rank) {
        list[rank].rank = rank;
        list[rank].device = omp_get_default_device();
    }
    for (int round = 0; round < ROUNDS; ++round) {
        ompx_group_t made;
        int wrong = 0;
        CHECK((round % 2 == 0 ? ompx_group_dup(ompx_group_world, &made)
                              : ompx_group_create_endpoints(&made, list, ranks)) == 0);
#pragma omp target map(tofrom : wrong)
        wrong += ompx_barrier_group(made);
        CHECK(wrong == 0);
        CHECK(ompx_group_free(&made) == 0);
    }
    free(list);
}

/* Bad use: a status in the region, a sentence on the host. */
#define REGION_FAILS(code, on_host, by_gpu, ...)                                                   \
    do {                                                                                           \
        int status_ = 0;                                                                           \
        _Pragma("omp target is_device_ptr(out, in, signal, local) map(from : status_)") {          \
            status_ = (__VA_ARGS__);                                                               \
        }                                                                                          \
        CHECK(status_ == (code));                                                                  \
        SAYS(on_host, by_gpu);                                                                     \
    } while (0)

static void errors(void) {
    char *const out = target;
    char *const in = source;
    uint64_t *const signal = signals;
    int const device = omp_get_default_device();
    char *const local = ompx_target_alloc(64, device, ompx_local_mem_alloc);
    int const right = next, beyond = ranks;
    size_t const huge = (size_t)-8, gigabytes = (size_t)1 << 40;
    CHECK(local != NULL);
    fill(me);
    REGION_FAILS(OMPX_ERR_RANK, "outside the world", "outside the world",
                 ompx_put(beyond, out, in, 8));
    CHECK(strstr(ompx_last_error(), "ompx_put(rank=") != NULL);
    REGION_FAILS(OMPX_ERR_RANK, "outside the world", "outside the world", ompx_get(out, -1, in, 8));
    REGION_FAILS(OMPX_ERR_RANK, "outside the world", "outside the world",
                 ompx_atomic_add(beyond, signal, in, OMPX_UINT64));
    REGION_FAILS(OMPX_ERR_ARG, "null pointer", "a pointer is null", ompx_put(right, NULL, in, 8));
    REGION_FAILS(OMPX_ERR_ARG, "null pointer", "a pointer is null", ompx_get(NULL, right, in, 8));
    REGION_FAILS(OMPX_ERR_ARG, "null pointer", "a pointer is null", ompx_event_wait(NULL));
    ompx_event_t foreign = (ompx_event_t)(uintptr_t)0x55d000a00;
    REGION_FAILS(OMPX_ERR_ARG, "not an event", "not an event", ompx_event_wait(&foreign));
    REGION_FAILS(OMPX_ERR_ARG, "unknown kind", "unknown kind", ompx_waitRMA(0));
    CHECK(strstr(ompx_last_error(), "ompx_waitRMA(kind=0") != NULL);
    REGION_FAILS(OMPX_ERR_ARG, "null pointer", "a pointer is null",
                 ompx_put_signal(right, out, in, 8, NULL, 1, OMPX_SIGNAL_SET));
    REGION_FAILS(OMPX_ERR_ARG, "null pointer", "a pointer is null",
                 ompx_signal_wait(NULL, OMPX_CMP_EQ, 1));
    REGION_FAILS(OMPX_ERR_ARG, "overflows", "overflows", ompx_put(right, out, in, huge));
    REGION_FAILS(OMPX_ERR_RANGE, "past the end", "exceeds the symmetric memory",
                 ompx_put(right, out, in, gigabytes));
    REGION_FAILS(OMPX_ERR_RANGE, "past the end", "exceeds the symmetric memory",
                 ompx_get(out, right, in, gigabytes));
    if (ranks > 1 && !on_remote) { /* a session does not know the allocations */
        REGION_FAILS(OMPX_ERR_ADDRESS, "in local memory", "local or asymmetric memory",
                     ompx_put(right, local, in, 8));
    }
    REGION_FAILS(OMPX_ERR_ADDRESS, "outside the global address space", "neither in this rank",
                 ompx_put(right, (char *)(uintptr_t)4096, in, 8));
    REGION_FAILS(OMPX_ERR_ARG, "not a comparison", "not a comparison",
                 ompx_signal_wait(signal, (ompx_cmp_t)17, 1));
    REGION_FAILS(OMPX_ERR_ARG, "aligned", "not aligned",
                 ompx_signal_wait((uint64_t *)(void *)(out + 4), OMPX_CMP_EQ, 1));
    REGION_FAILS(OMPX_ERR_ARG, "align", "not aligned",
                 ompx_atomic_add(right, out + 2, in, OMPX_INT32));
    REGION_FAILS(OMPX_ERR_ARG, "", "does not take this type",
                 ompx_atomic_add(right, out, in, OMPX_INT16));
    REGION_FAILS(OMPX_ERR_ARG, "", "does not take this operator",
                 ompx_atomic_fetch(right, out, in, NULL, OMPX_DOUBLE, OMPX_BXOR));
    REGION_FAILS(OMPX_ERR_ARG, "", "does not take this operator",
                 ompx_put_signal(right, out, in, 8, signal, 1, (ompx_signal_op_t)9));
    REGION_FAILS(OMPX_ERR_ARG, "cannot be waited for", "does not take this type",
                 ompx_wait_until(signal, OMPX_FLOAT, OMPX_CMP_EQ, in));
    CHECK(ompx_target_free(local, device) == 0);
    meet();
    holds(me, 0, 0, 0); /* nothing was written */
    meet();
}

static void timeouts(void) {
    char *const out = target;
    char *const in = source;
    uint64_t *const signal = signals;
    char *const local = source;
    set_signals(6);
    REGION_FAILS(OMPX_ERR_TIMEOUT, "timed out", "timed out; the variable was 6",
                 ompx_signal_wait(&signal[1], OMPX_CMP_EQ, 7));
    CHECK(strstr(ompx_last_error(), "ompx_signal_wait(signal=") != NULL);
    REGION_FAILS(OMPX_ERR_TIMEOUT, "timed out", "timed out",
                 ompx_wait_until(&signal[1], OMPX_INT32, OMPX_CMP_EQ, &(int32_t){5}));
    /* The next region works. */
    int status = 1;
#pragma omp target is_device_ptr(out, in, signal) map(from : status)
    {
        status = ompx_put_signal(ompx_rank_num(), out, in, 8, &signal[1], 7, OMPX_SIGNAL_SET) |
                 ompx_signal_wait(&signal[1], OMPX_CMP_EQ, 7);
    }
    (void)local;
    CHECK(status == 0);
    meet();
}

int main(int argc, char **argv) {
    const char *const mode = argc > 1 ? argv[1] : "";
    me = ompx_rank_num();
    ranks = ompx_num_ranks();
    next = (me + 1) % ranks;
    previous = (me + ranks - 1) % ranks;
    source = allocate(BYTES);
    target = allocate(BYTES);
    signals = allocate(64 * sizeof(*signals));
    find_out_where();
    if (strcmp(mode, "timeout") == 0) {
        timeouts();
    } else {
        transfers();
        other_memory();
        signalled();
        waits_until();
        by_teams();
        atomics();
        compare_and_swap();
        contended();
        errors();
        if (ranks == 1 || !on_gpu || strcmp(mode, "together") == 0) {
            together();
            barriers();
            barriers_of_groups();
            barriers_of_new_groups();
        }
    }
    CHECK(ompx_target_free(signals, omp_get_default_device()) == 0);
    CHECK(ompx_target_free(target, omp_get_default_device()) == 0);
    CHECK(ompx_target_free(source, omp_get_default_device()) == 0);
    if (me == 0) {
        printf("device calls on %s: ok\n", on_gpu ? "a GPU" : "host devices");
    }
    return 0;
}
