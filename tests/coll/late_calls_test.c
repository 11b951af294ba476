/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * One rank is late once, so that the others give up some calls and make the next ones. A call that
 * succeeds on a rank gives it the right result: no rank takes part in a call with what another one
 * has published for a later call. On one node all ranks are together again at the end. 2 ranks or
 * more, DIOMP_ERRORS=return, DIOMP_TIMEOUT=0.5; the argument: elements of a block. Ends with 0 by
 * ompx_abort. */
#include "support/check.h"

#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

enum { CALLS = 12, LATE_US = 1200000, MAX_RANKS = 18 };

typedef enum {
    ALLREDUCE,
    ALLGATHER,
    ALLTOALL,
    REDUCE_SCATTER,
    ALLGATHERV,
    BCAST,
    NUM_KINDS
} kind_t;

static int me, ranks;
static size_t count;
static int64_t *src, *dst;

static int64_t value(int rank, int call, size_t i) {
    return (int64_t)i + 10 * rank + (int64_t)1000000 * call;
}

static int64_t sum(int call, size_t i) {
    return (int64_t)ranks * value(0, call, i) + 10 * (int64_t)ranks * (ranks - 1) / 2;
}

static int make_call(kind_t kind) {
    switch (kind) {
    case ALLREDUCE:
        return ompx_allreduce(dst, src, count, OMPX_INT64, OMPX_SUM, NULL);
    case ALLGATHER:
        return ompx_allgather(dst, src, count * sizeof(*src), NULL);
    case ALLGATHERV: {
        size_t nbytes[MAX_RANKS];
        for (int rank = 0; rank < ranks; ++rank) {
            nbytes[rank] = count * sizeof(*src);
        }
        return ompx_allgatherv(dst, nbytes, NULL, src, NULL);
    }
    case ALLTOALL:
        return ompx_alltoall(dst, src, count * sizeof(*src), NULL);
    case REDUCE_SCATTER:
        return ompx_reduce_scatter(dst, src, count, OMPX_INT64, OMPX_SUM, NULL);
    default:
        return ompx_bcast(dst, count * sizeof(*dst), NULL);
    }
}

/* The element that a successful call gives; block: its number in dst. */
static int64_t expected(kind_t kind, int call, int block, size_t i) {
    switch (kind) {
    case ALLREDUCE:
        return sum(call, i);
    case ALLGATHER:
    case ALLGATHERV:
        return value(block, call, i);
    case ALLTOALL:
        return value(block, call, (size_t)me * count + i);
    case REDUCE_SCATTER:
        return sum(call, (size_t)me * count + i);
    default:
        return value(0, call, i);
    }
}

static int is_right(kind_t kind, int call) {
    int const blocks = kind == ALLGATHER || kind == ALLGATHERV || kind == ALLTOALL ? ranks : 1;
    for (int block = 0; block < blocks; ++block) {
        for (size_t i = 0; i < count; ++i) {
            if (dst[(size_t)block * count + i] != expected(kind, call, block, i)) {
                return 0;
            }
        }
    }
    return 1;
}

/* Returns the number of successful calls. */
static int calls_with_a_late_rank(kind_t kind) {
    int num_good = 0;
    for (int call = 0; call < CALLS; ++call) {
        if (call == 1 && me == ranks - 1) {
            usleep(LATE_US);
        }
        for (size_t i = 0; i < count * (size_t)ranks; ++i) {
            src[i] = value(me, call, i);
            dst[i] = kind == BCAST && me == 0 ? src[i] : -1;
        }
        int const status = make_call(kind);
        CHECK(status == 0 || status == OMPX_ERR_TIMEOUT);
        CHECK(status != 0 || is_right(kind, call));
        num_good += status == 0;
    }
    return num_good;
}

int main(int argc, char **argv) {
    me = ompx_rank_num();
    ranks = ompx_num_ranks();
    CHECK(argc == 2 && ranks > 1 && ranks <= MAX_RANKS);
    count = (size_t)atol(argv[1]);
    src = malloc(count * (size_t)ranks * sizeof(*src));
    dst = malloc(count * (size_t)ranks * sizeof(*dst));
    CHECK(src != NULL && dst != NULL);
    for (int kind = 0; kind < NUM_KINDS; ++kind) {
        int const num_good = calls_with_a_late_rank((kind_t)kind);
        CHECK(num_good > 2 || ompx_num_local_ranks() < ranks);
    }
    if (me == 0) {
        sleep(2); /* the others check what they have */
        ompx_abort(0);
    }
    sleep(20);
    return 1;
}
