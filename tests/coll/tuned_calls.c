// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One call of a collective on global memory: tuned_calls COLLECTIVE BYTES. Checks its result.
#include <diomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long long value_of(int rank, size_t i) { return (long long)(i % 1000) * 64 + rank; }

static long long sum_of(int ranks, size_t i) {
    return value_of(0, i) * ranks + (long long)ranks * (ranks - 1) / 2;
}

int main(int argc, char **argv) {
    if (argc != 3 || ompx_init() != OMPX_SUCCESS) {
        return 2;
    }
    const char *const what = argv[1];
    size_t const bytes = strtoul(argv[2], NULL, 10);
    size_t const count = bytes / sizeof(long long);
    int const rank = ompx_get_rank_num();
    int const ranks = ompx_get_num_ranks();
    size_t const all = (size_t)ranks * bytes;
    long long *const src = ompx_alloc(all, 64, OMPX_MEM_SYMMETRIC);
    long long *const dst = ompx_alloc(all, 64, OMPX_MEM_SYMMETRIC);
    for (size_t i = 0; i < (size_t)ranks * count; ++i) {
        src[i] = value_of(rank, i);
        dst[i] = -1;
    }
    ompx_barrier(ompx_group_world);
    int wrong = 0;
    if (strcmp(what, "bcast") == 0) {
        ompx_bcast(src, bytes, ompx_group_world);
        for (size_t i = 0; i < count; ++i) {
            wrong += src[i] != value_of(0, i);
        }
    } else if (strcmp(what, "reduce") == 0) {
        ompx_reduce(dst, src, count, OMPX_INT64, OMPX_SUM, 0, ompx_group_world);
        for (size_t i = 0; rank == 0 && i < count; ++i) {
            wrong += dst[i] != sum_of(ranks, i);
        }
    } else if (strcmp(what, "allreduce") == 0) {
        ompx_allreduce(dst, src, count, OMPX_INT64, OMPX_SUM, ompx_group_world);
        for (size_t i = 0; i < count; ++i) {
            wrong += dst[i] != sum_of(ranks, i);
        }
    } else if (strcmp(what, "gather") == 0) {
        ompx_gather(dst, src, bytes, 0, ompx_group_world);
        for (size_t i = 0; rank == 0 && i < (size_t)ranks * count; ++i) {
            wrong += dst[i] != value_of((int)(i / count), i % count);
        }
    } else if (strcmp(what, "scatter") == 0) {
        ompx_scatter(dst, src, bytes, 0, ompx_group_world);
        for (size_t i = 0; i < count; ++i) {
            wrong += dst[i] != value_of(0, (size_t)rank * count + i);
        }
    } else if (strcmp(what, "allgather") == 0) {
        ompx_allgather(dst, src, bytes, ompx_group_world);
        for (size_t i = 0; i < (size_t)ranks * count; ++i) {
            wrong += dst[i] != value_of((int)(i / count), i % count);
        }
    } else if (strcmp(what, "reduce_scatter") == 0) {
        ompx_reduce_scatter(dst, src, count, OMPX_INT64, OMPX_SUM, ompx_group_world);
        for (size_t i = 0; i < count; ++i) {
            wrong += dst[i] != sum_of(ranks, (size_t)rank * count + i);
        }
    } else if (strcmp(what, "alltoall") == 0) {
        ompx_alltoall(dst, src, bytes, ompx_group_world);
        for (size_t i = 0; i < (size_t)ranks * count; ++i) {
            wrong += dst[i] != value_of((int)(i / count), (size_t)rank * count + i % count);
        }
    } else {
        wrong = 1;
    }
    if (wrong != 0) {
        printf("rank %d: %s: %d wrong\n", rank, what, wrong);
    }
    ompx_free(dst);
    ompx_free(src);
    ompx_finalize();
    return wrong != 0;
}
