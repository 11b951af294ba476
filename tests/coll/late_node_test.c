/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * A node that makes a call after the other nodes have given up waiting for it gets the right result
 * or an error, and no result that lacks data. 3 ranks, a node each, DIOMP_TIMEOUT=1,
 * DIOMP_ERRORS=return; arguments: bytes of the operand, the rank that is late. */
#include <diomp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { NUM_RANKS = 3, LATE_US = 2500000, TIMEOUT_US = 1000000 };

static int is_sum(const int64_t *values, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        if (values[i] != 1 + 2 + 3) {
            return 0;
        }
    }
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 3 || ompx_num_ranks() != NUM_RANKS) {
        return 2;
    }
    size_t const count = (size_t)atol(argv[1]) / sizeof(int64_t);
    int const me = ompx_rank_num();
    int const is_late = me == atoi(argv[2]);
    int64_t *const src = malloc(count * sizeof(int64_t));
    int64_t *const dst = calloc(count, sizeof(int64_t));
    if (src == NULL || dst == NULL) {
        return 2;
    }
    for (size_t i = 0; i < count; ++i) {
        src[i] = me + 1;
    }
    int num_wrong = 0;
    for (int call = 0; call < 2; ++call) { /* the first one connects the ranks */
        if (call == 1 && is_late) {
            usleep(LATE_US);
        }
        for (size_t i = 0; i < count; ++i) {
            dst[i] = 0;
        }
        int const status = ompx_allreduce(dst, src, count, OMPX_INT64, OMPX_SUM, ompx_group_world);
        int const may_fail = call == 1;
        if (!(status == 0 && is_sum(dst, count)) && !(may_fail && status == OMPX_ERR_TIMEOUT)) {
            ++num_wrong;
            fprintf(stderr, "rank %d: call %d returns %d, first value %lld\n", me, call, status,
                    (long long)dst[0]);
        }
        if (call == 1 && !is_late && status == 0) {
            ++num_wrong;
            fprintf(stderr, "rank %d: has not given up\n", me);
        }
    }
    if (!is_late) {
        usleep(LATE_US - TIMEOUT_US); /* all reach the barrier at the end at the same time */
    }
    free(dst);
    free(src);
    return num_wrong != 0;
}
