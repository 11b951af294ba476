/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Members that do not come to a collective on devices: an error that names them after
 * DIOMP_TIMEOUT, never a hang. Two ranks with two devices each; runs with DIOMP_ERRORS=return and
 * DIOMP_TIMEOUT=1. */
#include "support/check.h"

#include <omp.h>
#include <string.h>
#include <unistd.h>

static double values[100];

int main(void) {
    int const me = ompx_rank_num();
    ompx_group_t all;
    CHECK(ompx_group_create_devices(ompx_group_world, &all) == 0);
    int const first = ompx_rank_device(0);
    int const second = ompx_rank_device(1);
#pragma omp target enter data device(first) map(to : values)
#pragma omp target enter data device(second) map(to : values)
    CHECK(ompx_target_bcast(values, OMPX_GROUP_DEVICES, sizeof(values), 0, all) == 0);
    /* A rank that does not come. */
    if (me == 0) {
        double const begin = omp_get_wtime();
        CHECK(ompx_target_allreduce(values, values, OMPX_GROUP_DEVICES, 100, OMPX_DOUBLE, OMPX_SUM,
                                    all) == OMPX_ERR_TIMEOUT);
        CHECK(strstr(ompx_last_error(), "rank 1") != NULL);
        CHECK(omp_get_wtime() - begin < 5);
    } else {
        usleep(1500 * 1000); /* past the other's limit here, within its limit of the barrier */
        /* It counts as made: no other rank makes it with the late one. */
        CHECK(ompx_target_allreduce(values, values, OMPX_GROUP_DEVICES, 100, OMPX_DOUBLE, OMPX_SUM,
                                    all) == OMPX_ERR_TIMEOUT);
        CHECK(strstr(ompx_last_error(), "rank 0 has given up") != NULL);
    }
    CHECK(ompx_barrier() == 0);
    /* An endpoint whose rank's other one does not call; then both do. */
    CHECK(ompx_target_bcast(values, first, 8, 0, all) == OMPX_ERR_TIMEOUT);
    CHECK(strstr(ompx_last_error(), "other endpoints of this rank") != NULL);
    CHECK(ompx_barrier() == 0);
    int codes[2] = {-1, -1};
#pragma omp parallel num_threads(2)
    codes[omp_get_thread_num()] = ompx_target_bcast(
        values, omp_get_thread_num() == 0 ? first : second, sizeof(values), 1, all);
    CHECK(codes[0] == 0 && codes[1] == 0);
#pragma omp target exit data device(first) map(release : values)
#pragma omp target exit data device(second) map(release : values)
    CHECK(ompx_group_free(&all) == 0);
    return 0;
}
