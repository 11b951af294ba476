/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Puts of contexts that are neither fenced nor freed are complete at the end of the runtime. */
#include "support/check.h"

#include <stdlib.h>
#include <string.h>

enum { NBYTES = 16 << 20, CONTEXTS = 2, MAX_RANKS = 16 };

int main(void) {
    int const me = ompx_rank_num(), ranks = ompx_num_ranks();
    int const right = (me + 1) % ranks, left = (me + ranks - 1) % ranks;
    unsigned char *const from = malloc(NBYTES);
    unsigned char *const to = calloc(CONTEXTS, NBYTES);
    unsigned char *all[MAX_RANKS];
    CHECK(from != NULL && to != NULL && ranks <= MAX_RANKS);
    memset(from, me + 1, NBYTES);
    CHECK(ompx_register(to, (size_t)CONTEXTS * NBYTES) == 0);
    CHECK(ompx_allgather(all, &to, sizeof(to), ompx_group_world) == 0);
    for (size_t i = 0; i < CONTEXTS; ++i) {
        ompx_context_t context;
        CHECK(ompx_context_create(&context) == 0);
        CHECK(ompx_context_put_nb(context, right, all[right] + i * NBYTES, from, NBYTES) == 0);
    }
    CHECK(ompx_finalize() == 0);
    for (size_t i = 0; i < (size_t)CONTEXTS * NBYTES; ++i) {
        CHECK(to[i] == left + 1);
    }
    free(to);
    free(from);
    return 0;
}
