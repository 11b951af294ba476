/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Collectives whose results every member can compute: element j of what member r has for member q
 * is element(r, q, j). */
#include "stress.h"

#include <stdlib.h>
#include <string.h>

typedef struct call {
    ompx_group_t group;
    int members, me, root;
    size_t count; /* elements per block */
    uint64_t seed;
    ompx_event_t *event; /* NULL: the blocking form */
    uint64_t *src, *dst; /* a block per member */
} call;

static uint64_t element(const call *c, int from, int to, size_t j) {
    return mix(c->seed + j * 4096 + (uint64_t)from * 64 + (uint64_t)to);
}
static void fill_block(const call *c, uint64_t *block, int from, int to) {
    for (size_t j = 0; j < c->count; ++j) {
        block[j] = element(c, from, to, j);
    }
}
static void check_block(const call *c, const uint64_t *block, int from, int to, const char *name) {
    for (size_t j = 0; j < c->count; ++j) {
        REQUIRE(block[j] == element(c, from, to, j), "%s: element %zu of %zu from member %d", name,
                j, c->count, from);
    }
}
static void wait_for(const call *c, int status, const char *name) {
    REQUIRE(status == 0, "%s", name);
    if (c->event != NULL) {
        SUCCEEDS(ompx_event_wait(c->event));
    }
}
/* Calls the blocking form or the other one. */
#define CALL(c, name, ...)                                                                         \
    wait_for(c, (c)->event != NULL ? name##_nb(__VA_ARGS__, (c)->event) : name(__VA_ARGS__), #name)

static void bcast(call *c) {
    fill_block(c, c->dst, c->me == c->root ? c->root : 63, 0);
    wait_for(c,
             c->event != NULL
                 ? ompx_bcast_from_nb(c->dst, 8 * c->count, c->root, c->group, c->event)
                 : ompx_bcast_from(c->dst, 8 * c->count, c->root, c->group),
             "ompx_bcast");
    check_block(c, c->dst, c->root, 0, "ompx_bcast");
}

static void allgather(call *c) {
    fill_block(c, c->src, c->me, 0);
    CALL(c, ompx_allgather, c->dst, c->src, 8 * c->count, c->group);
    for (int q = 0; q < c->members; ++q) {
        check_block(c, c->dst + (size_t)q * c->count, q, 0, "ompx_allgather");
    }
}

static void gather(call *c) {
    fill_block(c, c->src, c->me, 0);
    CALL(c, ompx_gather, c->dst, c->src, 8 * c->count, c->root, c->group);
    for (int q = 0; c->me == c->root && q < c->members; ++q) {
        check_block(c, c->dst + (size_t)q * c->count, q, 0, "ompx_gather");
    }
}

static void scatter(call *c) {
    for (int q = 0; c->me == c->root && q < c->members; ++q) {
        fill_block(c, c->src + (size_t)q * c->count, c->root, q);
    }
    CALL(c, ompx_scatter, c->dst, c->src, 8 * c->count, c->root, c->group);
    check_block(c, c->dst, c->root, c->me, "ompx_scatter");
}

static void alltoall(call *c) {
    for (int q = 0; q < c->members; ++q) {
        fill_block(c, c->src + (size_t)q * c->count, c->me, q);
    }
    CALL(c, ompx_alltoall, c->dst, c->src, 8 * c->count, c->group);
    for (int q = 0; q < c->members; ++q) {
        check_block(c, c->dst + (size_t)q * c->count, q, c->me, "ompx_alltoall");
    }
}

static void alltoallv(call *c) {
    size_t sent[64], sent_at[64], got[64], got_at[64];
    size_t send_sum = 0, recv_sum = 0;
    unsigned char *const src = (unsigned char *)c->src;
    unsigned char *const dst = (unsigned char *)c->dst;
    for (int q = 0; q < c->members; ++q) {
        sent[q] = element(c, c->me, q, 0) % (8 * c->count);
        got[q] = element(c, q, c->me, 0) % (8 * c->count);
        sent_at[q] = send_sum;
        got_at[q] = recv_sum;
        send_sum += sent[q];
        recv_sum += got[q];
        fill(src + sent_at[q], sent[q], element(c, c->me, q, 1));
    }
    CALL(c, ompx_alltoallv, dst, got, got_at, src, sent, sent_at, c->group);
    for (int q = 0; q < c->members; ++q) {
        fill(src, got[q], element(c, q, c->me, 1)); /* it is free again */
        REQUIRE(memcmp(src, dst + got_at[q], got[q]) == 0, "ompx_alltoallv: block of member %d", q);
    }
}

/* ---- Reductions, by sums that wrap */

static uint64_t sum_of(const call *c, int members, int to, size_t j) {
    uint64_t sum = 0;
    for (int q = 0; q < members; ++q) {
        sum += element(c, q, to, j);
    }
    return sum;
}
static void check_sums(const call *c, int members, int to, const char *name) {
    for (size_t j = 0; j < c->count; ++j) {
        REQUIRE(c->dst[j] == sum_of(c, members, to, j), "%s: element %zu of %zu", name, j,
                c->count);
    }
}

static void allreduce(call *c) {
    fill_block(c, c->src, c->me, 0);
    CALL(c, ompx_allreduce, c->dst, c->src, c->count, OMPX_UINT64, OMPX_SUM, c->group);
    check_sums(c, c->members, 0, "ompx_allreduce");
}

static void reduce(call *c) {
    fill_block(c, c->src, c->me, 0);
    CALL(c, ompx_reduce, c->dst, c->src, c->count, OMPX_UINT64, OMPX_SUM, c->root, c->group);
    if (c->me == c->root) {
        check_sums(c, c->members, 0, "ompx_reduce");
    }
}

static void reduce_scatter(call *c) {
    for (int q = 0; q < c->members; ++q) {
        fill_block(c, c->src + (size_t)q * c->count, c->me, q);
    }
    CALL(c, ompx_reduce_scatter, c->dst, c->src, c->count, OMPX_UINT64, OMPX_SUM, c->group);
    check_sums(c, c->members, c->me, "ompx_reduce_scatter");
}

static void scan(call *c) {
    fill_block(c, c->src, c->me, 0);
    CALL(c, ompx_scan, c->dst, c->src, c->count, OMPX_UINT64, OMPX_SUM, c->group);
    check_sums(c, c->me + 1, 0, "ompx_scan");
}

void collectives_work(random_source *common, ompx_group_t group, int calls) {
    static void (*const all[])(call *) = {bcast,     allgather, gather, scatter,        alltoall,
                                          alltoallv, allreduce, reduce, reduce_scatter, scan};
    size_t const members = (size_t)ompx_group_size(group);
    for (int i = 0; i < calls; ++i) {
        ompx_event_t event = NULL;
        call c = {.group = group, .members = (int)members, .me = ompx_group_rank(group)};
        size_t const which = draw_below(common, sizeof all / sizeof all[0]);
        c.root = (int)draw_below(common, members);
        c.count = draw_size(common, job.area_bytes / 8 / members);
        c.seed = draw(common);
        c.event = draw_below(common, 2) ? &event : NULL;
        c.src = need(malloc(8 * c.count * members));
        c.dst = need(malloc(8 * c.count * members));
        all[which](&c);
        free(c.src);
        free(c.dst);
    }
}
