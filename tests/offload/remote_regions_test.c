/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Collective calls in regions of remote devices, in their order. DIOMP_ERRORS=return. */
#include "support/check.h"

int main(void) {
    int const me = ompx_rank_num(), ranks = ompx_num_ranks();
    for (int64_t round = 1; round <= 20; ++round) {
        int status = -1;
        int64_t sum = 0, from_last = 0;
        int64_t const mine = round * (me + 1);
#pragma omp target map(from : status, from_last) map(tofrom : sum) map(to : mine)
        {
            int64_t value = mine * 100;
            status = ompx_barrier();
            status |= ompx_allreduce(&sum, &mine, 1, OMPX_INT64, OMPX_SUM, ompx_group_world);
            status |= ompx_bcast_from(&value, sizeof value, ompx_num_ranks() - 1, ompx_group_world);
            from_last = value;
        }
        CHECK(status == 0 && from_last == 100 * round * ranks);
        CHECK(sum == round * ranks * (ranks + 1) / 2);
    }
    CHECK(ompx_barrier() == 0);
    if (me == 0) {
        puts("remote regions: ok");
    }
    return 0;
}
