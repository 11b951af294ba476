// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The random numbers of HPCC's RandomAccess: the powers of x modulo x^64 + x^2 + x + 1, over the
// field of two elements. Word i of the sequence is x^i, so streams may begin anywhere.
#ifndef GUPS_STREAM_H
#define GUPS_STREAM_H

#include "diomp.h"

#include <stdint.h>

static inline uint64_t stream_next(uint64_t value) {
    return value << 1 ^ (value >> 63 != 0 ? 7 : 0);
}

static inline uint64_t stream_product(uint64_t a, uint64_t b) {
    uint64_t sum = 0;
    for (; b != 0; b >>= 1, a = stream_next(a)) {
        sum ^= (b & 1) != 0 ? a : 0;
    }
    return sum;
}

// Returns x^index.
static inline uint64_t stream_word(uint64_t index) {
    uint64_t word = 1;
    for (uint64_t power = 2; index != 0; index >>= 1, power = stream_product(power, power)) {
        word = (index & 1) != 0 ? stream_product(word, power) : word;
    }
    return word;
}

// A table of ranks << log2 words, 1 << log2 on each rank.
typedef struct table {
    uint64_t *own; // in symmetric memory
    int ranks;
    int log2;
} table;

// Updates the table by `count` words of the sequence after `word`. Returns the first status that
// is not OMPX_SUCCESS.
static inline int stream_update(table t, uint64_t word, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
        word = stream_next(word);
        const int rank = (int)((word >> t.log2) % (uint64_t)t.ranks);
        const int status =
            ompx_atomic_xor(rank, &t.own[word & (((uint64_t)1 << t.log2) - 1)], &word, OMPX_UINT64);
        if (status != OMPX_SUCCESS) {
            return status;
        }
    }
    return OMPX_SUCCESS;
}

#endif
