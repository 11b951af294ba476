/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Collective calls in regions of remote devices, in their order. DIOMP_ERRORS=return. */
#include "support/check.h"

#include <omp.h>

/* Collectives of groups of the host: by halves, and of the ranks' devices in another order. */
static void in_groups(int me, int ranks) {
    ompx_group_t half, devices;
    ompx_endpoint_t list[16];
    for (int i = 0; i < ranks; ++i) {
        list[i].rank = ranks - 1 - i;
        list[i].device = omp_get_default_device();
    }
    CHECK(ompx_group_split(ompx_group_world, me % 2, -me, &half) == 0);
    CHECK(ompx_group_create_endpoints(&devices, list, ranks) == 0);
    int const num_halves = (ranks + 1 - me % 2) / 2;
    for (int round = 0; round < 10; ++round) {
        int status = 0, size = 0, rank_in_devices = 0;
        int64_t sum = 0, first = me;
#pragma omp target map(tofrom : status, size, rank_in_devices, sum, first)
        {
            int64_t const one = 1;
            status |= ompx_allreduce(&sum, &one, 1, OMPX_INT64, OMPX_SUM, half);
            status |= ompx_bcast_from(&first, sizeof first, 0, devices);
            size = ompx_group_size(half);
            rank_in_devices = ompx_group_rank(devices);
        }
        CHECK(status == 0 && sum == num_halves && size == num_halves);
        CHECK(first == ranks - 1 && rank_in_devices == ranks - 1 - me);
    }
    int freed = 0;
#pragma omp target map(from : freed)
    {
        ompx_group_t copy = half;
        freed = ompx_group_free(&copy);
    }
    CHECK(freed == OMPX_ERR_ARG);
    double const begin = omp_get_wtime();
    CHECK(ompx_group_free(&half) == 0 && ompx_group_free(&devices) == 0);
    CHECK(omp_get_wtime() - begin < 5);
}

/* The host creates a group while a region of its device waits: on odd ranks, for the rank before.
 */
static void beside_a_region(int me, int ranks) {
    int const device = omp_get_default_device();
    uint64_t *const flag = ompx_target_alloc(sizeof *flag, device, ompx_symmetric_mem_alloc);
    uint64_t const zero = 0, one = 1;
    int const next = me + 1;
    int status = 0;
    ompx_group_t made;
    CHECK(flag != NULL);
    CHECK(ompx_target_put(me, flag, device, &zero, omp_get_initial_device(), sizeof zero) == 0);
    CHECK(ompx_barrier() == 0);
    if (me % 2 == 1) {
#pragma omp target is_device_ptr(flag) map(tofrom : status) nowait
        status = ompx_signal_wait(flag, OMPX_CMP_EQ, 1);
    }
    CHECK(ompx_group_dup(ompx_group_world, &made) == 0);
    if (me % 2 == 0 && next < ranks) {
#pragma omp target is_device_ptr(flag) map(tofrom : status) map(to : one)
        status = ompx_put(next, flag, &one, sizeof one) | ompx_fence();
    }
#pragma omp taskwait
    CHECK(status == 0);
    CHECK(ompx_group_free(&made) == 0);
    CHECK(ompx_target_free(flag, device) == 0);
}

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
    in_groups(me, ranks);
    beside_a_region(me, ranks);
    CHECK(ompx_barrier() == 0);
    if (me == 0) {
        puts("remote regions: ok");
    }
    return 0;
}
