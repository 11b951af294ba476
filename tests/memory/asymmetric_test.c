/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Asymmetric memory: parts of different sizes, reached by the own address (the same offset in the
 * other's part) and by ompx_global_ptr (also beyond the own part). */
#include "support/check.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { LARGE = 8 << 20, NUM_SIZES = 5 };
static size_t const sizes[NUM_SIZES] = {0, 1000, LARGE, 64, 4096};

static int me, ranks;
static unsigned char buffer[LARGE];

/* Ranks of different nodes with the same slot have segments at the same addresses: an address of
 * no own block may be the other rank's, and is not checked then. */
static int has_own_address(int rank) {
    const char *const per_node = getenv("DIOMP_NODE_SIZE");
    int const places = per_node == NULL ? ranks : atoi(per_node);
    return rank == me || rank % places != me % places;
}

/* In every round another rank has the empty and the large part. */
static size_t size_at(int rank, int round) { return sizes[(rank + round) % NUM_SIZES]; }

static unsigned char byte_of(int owner, int writer, size_t i) {
    return (unsigned char)(i * 13 + i / 257 + (size_t)owner * 31 + (size_t)writer * 101);
}

static void prepare(int owner, int writer, size_t from, size_t nbytes) {
    for (size_t i = 0; i < nbytes; ++i) {
        buffer[i] = byte_of(owner, writer, from + i);
    }
}

static int matches(const unsigned char *p, int owner, int writer, size_t from, size_t nbytes) {
    for (size_t i = 0; i < nbytes; ++i) {
        if (p[i] != byte_of(owner, writer, from + i)) {
            return 0;
        }
    }
    return 1;
}

static unsigned char *allocate(size_t nbytes) {
    unsigned char *part = ompx_alloc(nbytes, 0, OMPX_MEM_ASYMMETRIC);
    CHECK(part != NULL);
    ompx_addr_info_t info;
    CHECK(ompx_addr_info(part, &info) == 0);
    CHECK(info.kind == OMPX_MEM_ASYMMETRIC && info.nbytes == nbytes && info.rank == me);
    return part;
}

static void own_addresses(unsigned char *part, int round) {
    int const to = (me + 1) % ranks;
    size_t const theirs = size_at(to, round);
    size_t const reach = theirs < size_at(me, round) ? theirs : size_at(me, round);
    size_t const begin = reach / 3; /* an offset inside the own part */
    prepare(to, me, 0, reach);
    CHECK(ompx_put(to, part, buffer, begin) == 0);
    CHECK(ompx_put(to, part + begin, buffer + begin, reach - begin) == 0);
    CHECK(ompx_barrier() == 0);
    int const from = (me + ranks - 1) % ranks;
    size_t const received =
        size_at(from, round) < size_at(me, round) ? size_at(from, round) : size_at(me, round);
    CHECK(matches(part, me, from, 0, received));
    memset(buffer, 0, reach);
    CHECK(ompx_get(buffer, to, part + begin, reach - begin) == 0);
    CHECK(matches(buffer, to, me, begin, reach - begin));
    CHECK(ompx_barrier() == 0);
}

/* The whole part of everybody, in turn written by every rank. */
static void whole_parts(unsigned char *part, int round) {
    for (int shift = 0; shift < ranks; ++shift) {
        int const to = (me + shift) % ranks;
        size_t nbytes = 1;
        unsigned char *there = ompx_global_ptr(part, to, &nbytes);
        CHECK(there != NULL && nbytes == size_at(to, round));
        prepare(to, me, 0, nbytes);
        size_t const half = nbytes / 2;
        CHECK(ompx_put(to, there, buffer, half) == 0);
        CHECK(ompx_put(to, there + half, buffer + half, nbytes - half) == 0);
        CHECK(ompx_barrier() == 0);
        CHECK(matches(part, me, (me + ranks - shift) % ranks, 0, size_at(me, round)));
        memset(buffer, 0, nbytes);
        CHECK(ompx_get(buffer, to, there, nbytes) == 0);
        CHECK(matches(buffer, to, me, 0, nbytes));
        CHECK(ompx_barrier() == 0);
    }
}

static void ends_of_parts(unsigned char *part, int round) {
    int const to = (me + 1) % ranks;
    if (to == me) {
        return;
    }
    size_t const theirs = size_at(to, round);
    CHECK(ompx_put(to, part, buffer, theirs + 1) == OMPX_ERR_RANGE);
    CHECK(strstr(ompx_last_error(), "past the end") != NULL);
    CHECK(ompx_get(buffer, to, part, theirs + 1) == OMPX_ERR_RANGE);
    size_t const own = size_at(me, round);
    if (own > theirs) {
        CHECK(ompx_put(to, part + own - 1, buffer, 1) == OMPX_ERR_RANGE);
        CHECK(ompx_put(to, part + theirs, buffer, 1) == OMPX_ERR_RANGE);
    }
    CHECK(ompx_put(to, part, buffer, 0) == 0);
}

/* After a free, the same place may hold another allocation: what was cached must not be used. */
static void freed_and_allocated_again(void) {
    int const to = (me + 1) % ranks;
    for (int round = 0; round < 20; ++round) {
        size_t const mine = 1000 + (size_t)((me * 7 + round * 3) % 11) * 512;
        size_t const theirs = 1000 + (size_t)((to * 7 + round * 3) % 11) * 512;
        unsigned char *part = allocate(mine);
        size_t nbytes = 0;
        CHECK(ompx_global_ptr(part, to, &nbytes) != NULL);
        CHECK(nbytes == theirs);
        prepare(to, me + round, 0, theirs);
        CHECK(ompx_put(to, part, buffer, theirs) == 0);
        if (to != me) {
            CHECK(ompx_put(to, part, buffer, theirs + 1) == OMPX_ERR_RANGE);
        }
        CHECK(ompx_barrier() == 0);
        CHECK(matches(part, me, (me + ranks - 1) % ranks + round, 0, mine));
        CHECK(ompx_free(part) == 0);
        CHECK(!has_own_address(to) || ompx_put(to, part, buffer, 1) == OMPX_ERR_ADDRESS ||
              to == me);
    }
}

/* The neighbours of a part in the segment are not reached through it. */
static void neighbours_are_not_part_of_it(void) {
    int const to = (me + 1) % ranks;
    unsigned char *around[3];
    around[0] = ompx_alloc(64, 0, OMPX_MEM_LOCAL);
    /* Full granules: the next block starts where the part ends. The peer's part is larger. */
    unsigned char *part = allocate(me % 2 == 0 ? 64 : 640);
    around[1] = ompx_alloc(64, 0, OMPX_MEM_LOCAL);
    around[2] = NULL;
    for (unsigned char **p = around; *p != NULL; ++p) {
        if (to != me && has_own_address(to)) {
            CHECK(ompx_put(to, *p, buffer, 8) == OMPX_ERR_ADDRESS);
            CHECK(strstr(ompx_last_error(), "local memory") != NULL);
        }
        CHECK(ompx_put(me, *p, buffer, 8) == 0);
    }
    CHECK(ompx_barrier() == 0);
    CHECK(ompx_free(part) == 0);
    CHECK(ompx_free(around[0]) == 0 && ompx_free(around[1]) == 0);
}

int main(void) {
    me = ompx_rank_num();
    ranks = ompx_num_ranks();
    ompx_segment_info_t before, after;
    CHECK(ompx_segment_info(&before) == 0);
    for (int round = 0; round < NUM_SIZES; ++round) {
        unsigned char *part = allocate(size_at(me, round));
        unsigned char *second = allocate(size_at(me, round + 1));
        own_addresses(part, round);
        whole_parts(part, round);
        whole_parts(second, round + 1);
        ends_of_parts(part, round);
        CHECK(ompx_barrier() == 0);
        CHECK(matches(second, me, (me + 1) % ranks, 0, size_at(me, round + 1)));
        CHECK(ompx_free(part) == 0);
        CHECK(ompx_free(second) == 0);
    }
    freed_and_allocated_again();
    neighbours_are_not_part_of_it();
    CHECK(ompx_segment_info(&after) == 0);
    CHECK(after.num_allocations == before.num_allocations);
    CHECK(after.largest_free == before.largest_free);
    return 0;
}
