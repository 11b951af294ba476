/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Puts of a context of a team are complete when shmem_finalize returns, without a quiet. Static
 * data is written by messages on networks. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

enum { NBYTES = 8 << 20 };

static unsigned char target[NBYTES];

int main(void) {
    shmem_init();
    int const me = shmem_my_pe(), num_pes = shmem_n_pes();
    unsigned char *const source = malloc(NBYTES);
    shmem_team_t team;
    shmem_ctx_t ctx;
    memset(source, me + 1, NBYTES);
    EXPECT_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, num_pes, NULL, 0, &team), 0);
    EXPECT_EQ(shmem_team_create_ctx(team, SHMEM_CTX_PRIVATE, &ctx), 0);
    shmem_barrier_all();
    for (int i = 0; i < 4; ++i) {
        shmem_ctx_putmem_nbi(ctx, target, source, NBYTES, (me + 1) % num_pes);
    }
    shmem_finalize();
    for (int i = 0; i < NBYTES; ++i) {
        if (target[i] != (me + num_pes - 1) % num_pes + 1) {
            fprintf(stderr, "PE %d: byte %d is %d\n", me, i, target[i]);
            abort();
        }
    }
    free(source);
    return 0;
}
