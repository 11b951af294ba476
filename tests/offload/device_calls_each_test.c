/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Calls in regions on each device of a rank: put to the corresponding device of the next rank. */
#include "support/check.h"

#include <omp.h>

int main(void) {
    int const me = ompx_rank_num(), ranks = ompx_num_ranks();
    int const next = (me + 1) % ranks, previous = (me + ranks - 1) % ranks;
    for (int i = 0; i < ompx_num_rank_devices(); ++i) {
        int const device = ompx_rank_device(i);
        uint64_t *const word = ompx_target_alloc(sizeof *word, device, ompx_symmetric_mem_alloc);
        uint64_t const mine = (uint64_t)(100 * i + me), expected = (uint64_t)(100 * i + previous);
        uint64_t got = 0;
        int status = -1, in_region = 0;
        CHECK(word != NULL && ompx_barrier() == 0);
#pragma omp target device(device) is_device_ptr(word) map(from : status, in_region) map(to : mine)
        {
            in_region = ompx_num_ranks();
            status = ompx_put(next, word, &mine, sizeof mine);
            status |= ompx_fence();
        }
        CHECK(status == 0 && in_region == ranks);
        CHECK(ompx_barrier() == 0);
        CHECK(ompx_target_get(&got, omp_get_initial_device(), me, word, device, sizeof got) == 0);
        CHECK(got == expected);
        CHECK(ompx_target_free(word, device) == 0);
    }
    if (me == 0) {
        printf("calls on %d devices: ok\n", ompx_num_rank_devices());
    }
    return 0;
}
