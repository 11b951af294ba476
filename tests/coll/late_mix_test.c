/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Calls of all kinds and sizes in an order that a seed gives, while ranks are late now and then, so
 * that others give calls up. A call that succeeds on a rank gives it the right result, in groups of
 * all ranks and of some; symmetric memory has one offset on all ranks. On one node, all groups work
 * again as soon as the ranks are together. 2 ranks or more, DIOMP_ERRORS=return, DIOMP_TIMEOUT=0.3;
 * the argument: the seed. Ends with 0 by ompx_abort. */
#include "support/check.h"

#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    CALLS = 24,
    LATE_US = 700000,
    SOON_US = 6000000,
    MAX_RANKS = 18,
    MAX_COUNT = 20000,
    TRIES = 16
};

typedef enum {
    BARRIER,
    BCAST,
    REDUCE,
    ALLREDUCE,
    GATHER,
    SCATTER,
    ALLGATHER,
    ALLTOALL,
    REDUCE_SCATTER,
    ALLGATHERV,
    ALLTOALLV,
    SCAN,
    EXSCAN,
    ALLOCATE,
    FREE,
    REALLOCATE,
    SPLIT,
    DUPLICATE,
    CREATE_DEVICES,
    CREATE_GRID,
    NUM_KINDS
} kind_t;

typedef struct {
    kind_t kind;
    int number;
    int root;
    size_t count;
    int waits_for_event;
    ompx_group_t group;
    int me, size; /* in the group */
} call_t;

static int64_t *src, *dst;
static void *memory[CALLS]; /* of symmetric and asymmetric memory in turn */
static uint64_t state;

/* xorshift64*, equal on all ranks */
static uint64_t draw(uint64_t below) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (state * UINT64_C(2685821657736338717) >> 33) % below;
}

static int64_t value(const call_t *call, int rank, size_t i) {
    return (int64_t)i + (int64_t)100000 * rank + (int64_t)10000000 * call->number;
}

/* Of the ranks before `end`. */
static int64_t sum(const call_t *call, int end, size_t i) {
    int64_t of_all = 0;
    for (int rank = 0; rank < end; ++rank) {
        of_all += value(call, rank, i);
    }
    return of_all;
}

static int make(const call_t *call) {
    size_t const nbytes = call->count * sizeof(*src);
    size_t blocks[MAX_RANKS];
    for (int rank = 0; rank < call->size; ++rank) {
        blocks[rank] = nbytes;
    }
    ompx_group_t const group = call->group;
    switch (call->kind) {
    case BARRIER:
        return ompx_barrier_group(group);
    case BCAST:
        return ompx_bcast_from(dst, nbytes, call->root, group);
    case REDUCE:
        return ompx_reduce(dst, src, call->count, OMPX_INT64, OMPX_SUM, call->root, group);
    case ALLREDUCE: {
        if (!call->waits_for_event) {
            return ompx_allreduce(dst, src, call->count, OMPX_INT64, OMPX_SUM, group);
        }
        ompx_event_t event;
        int const status =
            ompx_allreduce_nb(dst, src, call->count, OMPX_INT64, OMPX_SUM, group, &event);
        return status == 0 ? ompx_event_wait(&event) : status;
    }
    case GATHER:
        return ompx_gather(dst, src, nbytes, call->root, group);
    case SCATTER:
        return ompx_scatter(dst, src, nbytes, call->root, group);
    case ALLGATHER:
        return ompx_allgather(dst, src, nbytes, group);
    case ALLTOALL:
        return ompx_alltoall(dst, src, nbytes, group);
    case REDUCE_SCATTER:
        return ompx_reduce_scatter(dst, src, call->count, OMPX_INT64, OMPX_SUM, group);
    case ALLGATHERV:
        return ompx_allgatherv(dst, blocks, NULL, src, group);
    case ALLTOALLV:
        return ompx_alltoallv(dst, blocks, NULL, src, blocks, NULL, group);
    case SCAN:
        return ompx_scan(dst, src, call->count, OMPX_INT64, OMPX_SUM, group);
    case EXSCAN:
        return ompx_exscan(dst, src, call->count, OMPX_INT64, OMPX_SUM, group);
    case SPLIT: {
        ompx_group_t part;
        return ompx_group_split(group, call->me % 2, 0, &part);
    }
    case DUPLICATE: {
        ompx_group_t copy;
        return ompx_group_dup(group, &copy);
    }
    case CREATE_DEVICES: {
        ompx_group_t devices;
        return ompx_group_create_devices(group, &devices);
    }
    case CREATE_GRID: {
        ompx_cart_t grid;
        int const periodic = 1;
        return ompx_cart_create(group, 1, &call->size, &periodic, 0, &grid);
    }
    case FREE:
        return ompx_free(memory[call->number]);
    default: {
        size_t const of_rank = call->number % 2 == 0 ? nbytes : nbytes * (size_t)(call->me + 1);
        void *const made =
            call->kind == ALLOCATE
                ? ompx_alloc(of_rank, 0,
                             call->number % 2 == 0 ? OMPX_MEM_SYMMETRIC : OMPX_MEM_ASYMMETRIC)
                : ompx_realloc(memory[call->number], of_rank);
        return made != NULL ? 0 : ompx_last_error_status();
    }
    }
}

/* Element i of a block of the result that a successful call gives. */
static int64_t expected(const call_t *call, int block, size_t i) {
    size_t const own = (size_t)call->me * call->count;
    switch (call->kind) {
    case BCAST:
        return value(call, call->root, i);
    case SCATTER:
        return value(call, call->root, own + i);
    case REDUCE:
    case ALLREDUCE:
        return sum(call, call->size, i);
    case REDUCE_SCATTER:
        return sum(call, call->size, own + i);
    case SCAN:
        return sum(call, call->me + 1, i);
    case EXSCAN:
        return sum(call, call->me, i);
    case GATHER:
    case ALLGATHER:
    case ALLGATHERV:
        return value(call, block, i);
    default:
        return value(call, block, own + i);
    }
}

static int is_right(const call_t *call) {
    kind_t const kind = call->kind;
    int const is_at_root = kind == REDUCE || kind == GATHER;
    if (kind == BARRIER || kind >= ALLOCATE || (is_at_root && call->me != call->root) ||
        (kind == EXSCAN && call->me == 0)) {
        return 1;
    }
    int const has_blocks = kind == GATHER || kind == ALLGATHER || kind == ALLTOALL ||
                           kind == ALLGATHERV || kind == ALLTOALLV;
    for (int block = 0; block < (has_blocks ? call->size : 1); ++block) {
        for (size_t i = 0; i < call->count; ++i) {
            if (dst[(size_t)block * call->count + i] != expected(call, block, i)) {
                fprintf(stderr,
                        "call %d, kind %d, count %zu, block %d, element %zu: %lld, not %lld\n",
                        call->number, (int)kind, call->count, block, i,
                        (long long)dst[(size_t)block * call->count + i],
                        (long long)expected(call, block, i));
                return 0;
            }
        }
    }
    return 1;
}

static int make_and_check(const call_t *call) {
    for (size_t i = 0; i < call->count * (size_t)call->size; ++i) {
        src[i] = value(call, call->me, i);
        dst[i] = call->kind == BCAST && call->me == call->root ? src[i] : -1;
    }
    int const status = make(call);
    /* Between nodes: the first large call of a group has failed, or an allocation on some ranks. */
    int const is_broken =
        ompx_num_local_ranks() < ompx_num_ranks() &&
        (status == OMPX_ERR_STATE || (status == OMPX_ERR_MISMATCH && call->kind >= ALLOCATE));
    CHECK(status == 0 || status == OMPX_ERR_TIMEOUT || is_broken);
    CHECK(status != 0 || is_right(call));
    return status == 0;
}

static uint64_t now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void sleep_until(uint64_t time_us) {
    for (uint64_t now = now_us(); now < time_us; now = now_us()) {
        usleep((useconds_t)(time_us - now));
    }
}

/* A symmetric block that all ranks have is at one offset. */
static void check_memory(int ranks) {
    char *const first = memory[0];
    char *const made = ompx_alloc(5000, 0, OMPX_MEM_SYMMETRIC);
    CHECK(made != NULL || ompx_num_local_ranks() < ranks);
    int64_t const offset = made != NULL ? made - first : 0;
    int64_t offsets[MAX_RANKS];
    if (ompx_allgather(offsets, &offset, sizeof(offset), NULL) != 0) {
        CHECK(ompx_num_local_ranks() < ranks);
        return;
    }
    for (int rank = 0; rank < ranks; ++rank) {
        CHECK(offsets[rank] == offset || offsets[rank] == 0 || offset == 0);
    }
}

int main(int argc, char **argv) {
    static const size_t counts[] = {1, 4, 40, 500, 6000, MAX_COUNT};
    int const me = ompx_rank_num();
    int const ranks = ompx_num_ranks();
    CHECK(argc == 2 && ranks > 1 && ranks <= MAX_RANKS);
    state = UINT64_C(0x9e3779b97f4a7c15) * ((uint64_t)atoll(argv[1]) + 1);
    src = calloc((size_t)MAX_COUNT * (size_t)ranks, sizeof(*src));
    dst = calloc((size_t)MAX_COUNT * (size_t)ranks, sizeof(*dst));
    CHECK(src != NULL && dst != NULL);
    /* Of the ranks without one, in reverse order; that one is alone. */
    ompx_group_t some = OMPX_GROUP_NONE;
    CHECK(ompx_group_split(ompx_group_world, me == ranks / 2, -me, &some) == 0);
    for (int i = 0; i < CALLS; ++i) {
        memory[i] = ompx_alloc(1000, 0, i % 2 == 0 ? OMPX_MEM_SYMMETRIC : OMPX_MEM_ASYMMETRIC);
        CHECK(memory[i] != NULL);
    }
    uint64_t start_us = now_us();
    CHECK(ompx_bcast(&start_us, sizeof(start_us), ompx_group_world) == 0);
    call_t call = {0};
    for (int i = 0; i < CALLS; ++i) {
        int const late = (int)draw((uint64_t)ranks * 5); /* one call in five has a late rank */
        call.kind = (kind_t)draw(NUM_KINDS);
        int const in_some = draw(3) == 0 && call.kind < ALLOCATE;
        call.number = i;
        call.count = counts[draw(sizeof(counts) / sizeof(counts[0]))];
        call.waits_for_event = draw(2) == 0;
        call.group = in_some ? some : ompx_group_world;
        call.me = in_some ? ompx_group_rank(some) : me;
        call.size = in_some ? ompx_group_size(some) : ranks;
        call.root = (int)(draw(1000) % (uint64_t)call.size);
        uint64_t const lateness_us = draw(3) * LATE_US / 2 + LATE_US / 4;
        if (late == me) {
            usleep((useconds_t)lateness_us);
        }
        make_and_check(&call);
    }
    /* Together again. */
    int num_good = 0; /* in sequence */
    int max_good = 0;
    for (int i = 0; i < TRIES; ++i) {
        sleep_until(start_us + SOON_US + (uint64_t)i * 150000);
        call.kind = ALLREDUCE;
        call.count = counts[i % 2 == 0 ? 0 : 4];
        call.number = CALLS + i;
        call.group = i % 4 < 2 ? ompx_group_world : some;
        call.me = i % 4 < 2 ? me : ompx_group_rank(some);
        call.size = i % 4 < 2 ? ranks : ompx_group_size(some);
        num_good = make_and_check(&call) ? num_good + 1 : 0;
        max_good = num_good > max_good ? num_good : max_good;
    }
    CHECK(max_good >= 4 || ompx_num_local_ranks() < ranks);
    for (int i = 0; i < 4; ++i) {
        check_memory(ranks);
    }
    if (me == 0) {
        sleep(1); /* the others check what they have */
        ompx_abort(0);
    }
    sleep(20);
    return 1;
}
