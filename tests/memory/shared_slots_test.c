/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Ranks of different nodes with the same slot, so that their segments are at the same addresses:
 * symmetric, asymmetric, local and registered memory of such ranks, in every way that a pointer may
 * name it. Also runs where all ranks have their own addresses. */
#include "support/check.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { NUM_BLOCKS = 12, MAX_RANKS = 8, ROUNDS = 6 };

static int me, ranks;

/* In symmetric memory: addresses of a rank that other ranks read. */
struct published {
    unsigned char *local;
    unsigned char *asymmetric[NUM_BLOCKS];
    unsigned char *registered;
};
static struct published *own;

static unsigned rand_of(unsigned a, unsigned b, unsigned c) {
    unsigned h = a * 2654435761u ^ (b + 77) * 40503u ^ (c + 5) * 2246822519u;
    h ^= h >> 13;
    h *= 3266489917u;
    return h ^ h >> 16;
}

static size_t size_of(int rank, int round, int block) {
    return rand_of((unsigned)rank, (unsigned)round, (unsigned)block) % 5000;
}

static struct published published_by(int rank) {
    struct published theirs;
    CHECK(ompx_get(&theirs, rank, own, sizeof(theirs)) == 0);
    return theirs;
}

/* Each rank writes a pattern into each other's memory at `there`, checks it, and the owner looks.
 */
static void pass_around(unsigned char *(*address)(int, int), int block, unsigned char *mine,
                        size_t nbytes, size_t (*size)(int)) {
    for (int shift = 0; shift < ranks; ++shift) {
        int const to = (me + shift) % ranks;
        size_t const n = size != NULL ? size(to) : nbytes;
        unsigned char buffer[5000], back[5000];
        memset(buffer, me * 16 + shift + 1, sizeof(buffer));
        unsigned char *const there = address(to, block);
        CHECK(ompx_put(to, there, buffer, n) == 0);
        CHECK(ompx_fence() == 0);
        CHECK(ompx_get(back, to, there, n) == 0);
        CHECK(memcmp(back, buffer, n) == 0);
        CHECK(ompx_barrier() == 0);
        size_t const here = size != NULL ? size(me) : nbytes;
        int const from = (me + ranks - shift) % ranks;
        for (size_t i = 0; i < here; ++i) {
            CHECK(mine[i] == from * 16 + shift + 1);
        }
        CHECK(ompx_barrier() == 0);
    }
}

static int g_round, g_block;
static unsigned char *local_of(int rank, int block) {
    (void)block;
    return published_by(rank).local;
}
static unsigned char *registered_of(int rank, int block) {
    (void)block;
    return published_by(rank).registered;
}
static unsigned char *raw_of(int rank, int block) { return published_by(rank).asymmetric[block]; }
static unsigned char *pointer_of(int rank, int block) {
    size_t nbytes = 1;
    unsigned char *const there = ompx_global_ptr(own->asymmetric[block], rank, &nbytes);
    CHECK(there != NULL && nbytes == size_of(rank, g_round, block));
    return there;
}
static size_t block_size(int rank) { return size_of(rank, g_round, g_block); }

static void asymmetric_blocks_and_what_lies_between(void) {
    unsigned char *kept[ROUNDS][3];
    for (int round = 0; round < ROUNDS; ++round) {
        g_round = round;
        for (int block = 0; block < NUM_BLOCKS; ++block) {
            own->asymmetric[block] = ompx_alloc(size_of(me, round, block), 0, OMPX_MEM_ASYMMETRIC);
            CHECK(own->asymmetric[block] != NULL);
            if (block % 5 == 0) { /* heaps of the ranks differ */
                kept[round][block / 5] = ompx_alloc(
                    1 + rand_of((unsigned)me, 3, (unsigned)block) % 9000, 0, OMPX_MEM_LOCAL);
                CHECK(kept[round][block / 5] != NULL);
                memset(kept[round][block / 5], 0xee, 1);
            }
        }
        own->local = kept[round][1];
        CHECK(ompx_barrier() == 0);
        for (int block = 0; block < NUM_BLOCKS; block += 3) {
            g_block = block;
            pass_around(raw_of, block, own->asymmetric[block], 0, block_size);
            pass_around(pointer_of, block, own->asymmetric[block], 0, block_size);
        }
        own->local[0] = 0;
        CHECK(ompx_barrier() == 0);
        pass_around(local_of, 0, own->local, 1, NULL);
        /* The own address names the same offset of the other's block, whatever lies there here. */
        for (int block = 0; block < NUM_BLOCKS; ++block) {
            int const to = (me + 1) % ranks;
            size_t const mine = size_of(me, round, block), theirs = size_of(to, round, block);
            size_t const both = mine < theirs ? mine : theirs;
            unsigned char byte = (unsigned char)(block + 1), back = 0;
            if (both > 0) {
                CHECK(ompx_put(to, own->asymmetric[block] + both - 1, &byte, 1) == 0);
                CHECK(ompx_get(&back, to, own->asymmetric[block] + both - 1, 1) == 0);
                CHECK(back == byte);
            }
            CHECK(to == me ||
                  ompx_put(to, own->asymmetric[block], &byte, theirs + 1) == OMPX_ERR_RANGE);
        }
        CHECK(ompx_barrier() == 0);
        for (int i = 0; i < NUM_BLOCKS; ++i) { /* in an order of its own, equal on all ranks */
            int const block = (i * 5 + round) % NUM_BLOCKS;
            CHECK(ompx_free(own->asymmetric[block]) == 0);
        }
        CHECK(ompx_free(kept[round][round % 3]) == 0);
        kept[round][round % 3] = NULL;
    }
    CHECK(ompx_barrier() == 0);
    for (int round = 0; round < ROUNDS; ++round) {
        for (int i = 0; i < 3; ++i) {
            CHECK(ompx_free(kept[round][i]) == 0);
        }
    }
}

static void zeroed_and_resized(void) {
    for (int round = 0; round < 4; ++round) {
        size_t const nbytes = 1 + size_of(me, round, 100);
        unsigned char *block = ompx_alloc(nbytes, 0, OMPX_MEM_ASYMMETRIC);
        CHECK(block != NULL);
        memset(block, me + 1, nbytes);
        CHECK(ompx_barrier() == 0);
        size_t const larger = nbytes + 100 * (size_t)(me + 1);
        unsigned char *moved = ompx_realloc(block, larger);
        CHECK(moved != NULL && moved[0] == me + 1 && moved[nbytes - 1] == me + 1);
        size_t left = 0;
        int const to = (me + 1) % ranks;
        CHECK(ompx_global_ptr(moved, to, &left) != NULL);
        CHECK(left == 1 + size_of(to, round, 100) + 100 * (size_t)(to + 1));
        CHECK(ompx_free(moved) == 0);
    }
}

/* Without space on one rank there is none on all, and nothing is lost. */
static void no_space_on_one_rank(void) {
    ompx_segment_info_t before, after;
    CHECK(ompx_segment_info(&before) == 0);
    for (int round = 0; round < 3; ++round) {
        size_t const nbytes = me == round % ranks ? before.nbytes + 1 : 64;
        CHECK(ompx_alloc(nbytes, 0, OMPX_MEM_ASYMMETRIC) == NULL);
        CHECK(strstr(ompx_last_error(), "space") != NULL ||
              strstr(ompx_last_error(), "room") != NULL);
    }
    CHECK(ompx_segment_info(&after) == 0);
    CHECK(after.num_allocations == before.num_allocations);
    CHECK(after.local_used == before.local_used && after.largest_free == before.largest_free);
}

static void *allocate_local(void *stop) {
    unsigned char *mine[64] = {0};
    for (unsigned i = 0; !__atomic_load_n((int *)stop, __ATOMIC_RELAXED); ++i) {
        unsigned char **const at = &mine[i % 64];
        CHECK(ompx_free(*at) == 0);
        *at = ompx_alloc(64 + rand_of(i, (unsigned)me, 9) % 4000, 0, OMPX_MEM_LOCAL);
        CHECK(*at != NULL);
    }
    for (int i = 0; i < 64; ++i) {
        CHECK(ompx_free(mine[i]) == 0);
    }
    return NULL;
}

/* Another thread allocates local memory at the same time. */
static void with_another_thread(void) {
    int stop = 0;
    pthread_t other;
    CHECK(pthread_create(&other, NULL, allocate_local, &stop) == 0);
    for (int round = 0; round < 50; ++round) {
        size_t const nbytes = 8 + 8 * (size_t)((me + round) % 5);
        uint64_t *block = ompx_alloc(nbytes, 0, OMPX_MEM_ASYMMETRIC);
        CHECK(block != NULL);
        int const to = (me + 1) % ranks;
        uint64_t const value = (uint64_t)(me * 1000 + round);
        CHECK(ompx_put(to, block, &value, sizeof(value)) == 0);
        CHECK(ompx_barrier() == 0);
        CHECK(block[0] == (uint64_t)((me + ranks - 1) % ranks * 1000 + round));
        CHECK(ompx_free(block) == 0);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    CHECK(pthread_join(other, NULL) == 0);
}

static void misuse(void) {
    unsigned char byte = 0;
    /* An address of no rank's segment here, and one in the runtime's part. */
    ompx_segment_info_t info;
    CHECK(ompx_segment_info(&info) == 0);
    int const to = (me + 1) % ranks;
    CHECK(ompx_put(to, (char *)info.base - 4096, &byte, 1) == OMPX_ERR_ADDRESS);
    CHECK(ompx_get(&byte, to, &byte, 1) == OMPX_ERR_ADDRESS || to == me);
    CHECK(ompx_put(to, (char *)info.base + info.nbytes - 1, &byte, 2) != 0);
    /* Memory of another rank of this node, for a rank elsewhere with another place. */
    for (int rank = 0; rank < ranks; ++rank) {
        for (int other = 0; other < ranks; ++other) {
            unsigned char *const near = ompx_remote_ptr(own, rank);
            if (rank == me || near == NULL || other == rank ||
                ompx_remote_ptr(own, other) == NULL) {
                continue;
            }
            /* Both on this node, so of different places. */
            CHECK(other == me || ompx_put(other, near, &byte, 1) == OMPX_ERR_ADDRESS);
        }
    }
    ompx_addr_info_t about;
    CHECK(ompx_addr_info(own, &about) == 0 && about.rank == me);
}

/* Whether the segment of another rank is at the addresses of the own one. */
static int has_shared_slot(void) {
    ompx_segment_info_t info;
    CHECK(ompx_segment_info(&info) == 0);
    uint64_t const base = (uintptr_t)info.base;
    uint64_t bases[MAX_RANKS];
    CHECK(ompx_allgather(bases, &base, sizeof(base), NULL) == 0);
    int num_equal = 0;
    for (int rank = 0; rank < ranks; ++rank) {
        num_equal += bases[rank] == base;
    }
    return num_equal > 1;
}

int main(int argc, char **argv) {
    me = ompx_rank_num();
    ranks = ompx_num_ranks();
    CHECK(ranks <= MAX_RANKS);
    CHECK(argc == 1 || (strcmp(argv[1], "shared") == 0 && has_shared_slot()));
    own = ompx_alloc(sizeof(*own), 0, OMPX_MEM_SYMMETRIC);
    CHECK(own != NULL);
    memset(own, 0, sizeof(*own));
    static unsigned char registered[600];
    CHECK(ompx_register(registered, sizeof(registered)) == 0);
    own->registered = registered;
    CHECK(ompx_barrier() == 0);
    pass_around(registered_of, 0, registered, sizeof(registered), NULL);
    asymmetric_blocks_and_what_lies_between();
    zeroed_and_resized();
    no_space_on_one_rank();
    with_another_thread();
    misuse();
    CHECK(ompx_barrier() == 0);
    CHECK(ompx_unregister(registered) == 0);
    CHECK(ompx_free(own) == 0);
    return 0;
}
