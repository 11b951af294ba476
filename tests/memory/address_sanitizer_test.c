/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Compiled with -fsanitize=address, linked with a library that is not (address_sanitizer.sh).
 * Without argument: which bytes AddressSanitizer takes for addressable. With one: rank 1 makes the
 * mistake of that name. */
#include "support/check.h"

#include <sanitizer/asan_interface.h>
#include <stdint.h>
#include <stdlib.h>

static int me;

/* Exactly the bytes of the block are addressable, and it lies alone. */
static void check_block(char *block, size_t nbytes) {
    CHECK(__asan_region_is_poisoned(block, nbytes) == NULL);
    CHECK(__asan_address_is_poisoned(block - 1));
    for (size_t i = 0; i < 64; ++i) {
        CHECK(__asan_address_is_poisoned(block + nbytes + i));
    }
}

static void check_kind(ompx_mem_kind_t kind, size_t nbytes) {
    char *blocks[3];
    for (int i = 0; i < 3; ++i) {
        blocks[i] = ompx_alloc(nbytes, 0, kind);
        memset(blocks[i], i, nbytes);
    }
    for (int i = 0; i < 3; ++i) {
        check_block(blocks[i], nbytes);
    }
    ompx_free(blocks[1]);
    for (size_t i = 0; i < nbytes; i += 1 + nbytes / 100) {
        CHECK(__asan_address_is_poisoned(blocks[1] + i));
    }
    check_block(blocks[0], nbytes);
    check_block(blocks[2], nbytes);
    char *const again = ompx_alloc(nbytes, 0, kind);
    check_block(again, nbytes);
    ompx_free(again);
    ompx_free(blocks[0]);
    ompx_free(blocks[2]);
    CHECK(__asan_address_is_poisoned(blocks[0]) && __asan_address_is_poisoned(blocks[2]));
}

static void check_sizes(void) {
    static const size_t sizes[] = {1, 7, 8, 63, 64, 65, 128, 1000, 65536, 1 << 20, (3 << 20) + 5};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        check_kind(OMPX_MEM_SYMMETRIC, sizes[i]);
        check_kind(OMPX_MEM_ASYMMETRIC, sizes[i]);
        check_kind(OMPX_MEM_LOCAL, sizes[i]);
    }
    char *const aligned = ompx_alloc(100, 1 << 20, OMPX_MEM_SYMMETRIC);
    check_block(aligned, 100);
    char *const grown = ompx_realloc(aligned, 5000);
    check_block(grown, 5000);
    ompx_free(grown);
    /* Beyond the outermost blocks, too. */
    char *const last = ompx_alloc(8, 0, OMPX_MEM_SYMMETRIC);
    char *const lowest = ompx_alloc(8, 0, OMPX_MEM_LOCAL);
    CHECK(__asan_address_is_poisoned(last + 60000) && __asan_address_is_poisoned(lowest - 60000));
    ompx_free(lowest);
    ompx_free(last);
}

/* What is allowed is not reported: transfers, signals, collectives up to the last byte. */
static void check_use(void) {
    int const ranks = ompx_num_ranks();
    int const right = (me + 1) % ranks;
    char *const block = ompx_alloc(77, 0, OMPX_MEM_SYMMETRIC);
    uint64_t *const signal = ompx_alloc(sizeof(*signal), 0, OMPX_MEM_SYMMETRIC);
    char from[77];
    memset(from, 'a' + me, sizeof(from));
    *signal = 0;
    ompx_barrier();
    CHECK(ompx_put_signal(right, block, from, sizeof(from), signal, 1, OMPX_SIGNAL_SET) == 0);
    CHECK(ompx_signal_wait(signal, OMPX_CMP_EQ, 1) == 0);
    CHECK(block[0] == 'a' + (me + ranks - 1) % ranks && block[76] == block[0]);
    CHECK(ompx_fence() == 0);
    CHECK(ompx_get(from, right, block, sizeof(from)) == 0 && from[76] == 'a' + me);
    ompx_barrier();
    CHECK(ompx_bcast(block, 77, ompx_group_world) == 0);
    ompx_barrier();
    char *const theirs = ompx_remote_ptr(block, right);
    CHECK(theirs == NULL || theirs[76] == 'a' + ranks - 1);
    ompx_free(signal);
    ompx_free(block);
}

static void err(const char *how, char *block, char *peers) {
    volatile char *const at = block;
    char own[200] = {0};
    if (strcmp(how, "overflow") == 0) {
        at[100] = 1;
    } else if (strcmp(how, "row") == 0) { /* as far as the next block, if there were no gap */
        at[150] = 1;
    } else if (strcmp(how, "underflow") == 0) {
        at[-1] = 1;
    } else if (strcmp(how, "put") == 0) {
        ompx_put(0, block, own, 101);
    } else if (strcmp(how, "get") == 0) {
        ompx_get(own, 0, block + 50, 51);
    } else if (strcmp(how, "source") == 0) {
        char *const heap = malloc(10);
        ompx_put(0, block, heap, 11);
        free(heap);
    } else if (strcmp(how, "signal") == 0) {
        ompx_put_signal(0, block + 1, own, 100, (uint64_t *)(void *)peers, 1, OMPX_SIGNAL_SET);
    }
}

int main(int count, char **arguments) {
    ompx_init();
    me = ompx_rank_num();
    if (count == 1) {
        check_sizes();
        check_use();
        ompx_finalize();
        return 0;
    }
    char *const block = ompx_alloc(100, 0, OMPX_MEM_SYMMETRIC);
    char *const next = ompx_alloc(100, 0, OMPX_MEM_SYMMETRIC);
    if (me == 1) {
        err(arguments[1], block, next);
    }
    ompx_free(next);
    ompx_free(block);
    if (me == 1 && strcmp(arguments[1], "freed") == 0) {
        *(volatile char *)block = 1;
    }
    ompx_finalize();
    return 0;
}
