/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Many ranks, each a node of its own: what most programs do once, with little data. */
#include "support/check.h"

#include <stdint.h>
#include <stdlib.h>

enum { ROW = 16 };

int main(void) {
    int const me = ompx_rank_num();
    int const ranks = ompx_num_ranks();
    uint64_t *const words =
        ompx_alloc((2 + 2 * (size_t)ranks) * sizeof(uint64_t), 0, OMPX_MEM_SYMMETRIC);
    CHECK(words != NULL);
    CHECK(ompx_barrier() == 0);

    /* The neighbours in a ring. */
    int const next = (me + 1) % ranks, before = (me + ranks - 1) % ranks;
    uint64_t const value = (uint64_t)me + 1;
    CHECK(ompx_put(next, &words[0], &value, sizeof(value)) == 0);
    CHECK(ompx_put(before, &words[1], &value, sizeof(value)) == 0);
    CHECK(ompx_barrier() == 0);
    CHECK(words[0] == (uint64_t)before + 1 && words[1] == (uint64_t)next + 1);

    /* Rows of a grid. */
    ompx_group_t row = OMPX_GROUP_NONE;
    CHECK(ompx_group_split(NULL, me / ROW, me, &row) == 0);
    CHECK(ompx_barrier(row) == 0);
    uint64_t sum = 0;
    CHECK(ompx_allreduce(&sum, &value, 1, OMPX_UINT64, OMPX_SUM, row) == 0);
    uint64_t expected = 0;
    for (int rank = me / ROW * ROW; rank < ranks && rank < (me / ROW + 1) * ROW; ++rank) {
        expected += (uint64_t)rank + 1;
    }
    CHECK(sum == expected);
    CHECK(ompx_group_free(&row) == 0);

    /* Everybody to everybody. */
    uint64_t *const out = words + 2, *const in = out + ranks;
    for (int rank = 0; rank < ranks; ++rank) {
        out[rank] = (uint64_t)me * 100000 + (uint64_t)rank;
    }
    CHECK(ompx_alltoall(in, out, sizeof(uint64_t), NULL) == 0);
    for (int rank = 0; rank < ranks; ++rank) {
        CHECK(in[rank] == (uint64_t)rank * 100000 + (uint64_t)me);
    }
    sum = 0;
    CHECK(ompx_allreduce(&sum, &value, 1, OMPX_UINT64, OMPX_SUM, NULL) == 0);
    CHECK(sum == (uint64_t)ranks * ((uint64_t)ranks + 1) / 2);
    CHECK(ompx_free(words) == 0);
    return 0;
}
