/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* One call whose number of bytes is too large for a size_t: argv[1]. It must end the job. */
#include <shmem.h>
#include <stdint.h>
#include <string.h>

static long src[8], dst[8];
static uint64_t arrived;

int main(int argc, char **argv) {
    size_t const too_many = SIZE_MAX / sizeof(long) + 2; /* 8 bytes, if the product wraps */
    const char *const call = argc > 1 ? argv[1] : "";
    int failed = 0;
    shmem_init();
    int const next = (shmem_my_pe() + 1) % shmem_n_pes();
    shmem_barrier_all();
    if (strcmp(call, "put") == 0) {
        shmem_long_put(dst, src, too_many, next);
    } else if (strcmp(call, "get64") == 0) {
        shmem_get64(dst, src, too_many, next);
    } else if (strcmp(call, "put_signal") == 0) {
        shmem_long_put_signal(dst, src, too_many, &arrived, 1, SHMEM_SIGNAL_SET, next);
    } else if (strcmp(call, "iput") == 0) {
        shmem_long_iput(dst, src, PTRDIFF_MAX / 4, 1, 9, next);
    } else if (strcmp(call, "broadcast") == 0) {
        failed = shmem_long_broadcast(SHMEM_TEAM_WORLD, dst, src, too_many, 0);
    } else if (strcmp(call, "collect") == 0) {
        failed = shmem_long_collect(SHMEM_TEAM_WORLD, dst, src, too_many);
    } else if (strcmp(call, "alltoalls") == 0) {
        failed = shmem_long_alltoalls(SHMEM_TEAM_WORLD, dst, src, 1, 1, too_many);
    } else if (strcmp(call, "broadcast64") == 0) {
        static long work[SHMEM_BCAST_SYNC_SIZE];
        shmem_broadcast64(dst, src, too_many, 0, 0, 0, shmem_n_pes(), work);
    }
    shmem_barrier_all();
    shmem_finalize();
    return failed != 0 ? 1 : 0;
}
