/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Remote devices in a program of ranks: their memory is in no address space of the ranks, and each
 * call that names one says so. Runs with DIOMP_ERRORS=return on 2 ranks with a remote device each
 * and no others. */
#include "support/check.h"

#include <omp.h>
#include <stdlib.h>

#define REFUSED(call) FAILS(call, OMPX_ERR_UNSUPPORTED, "device 0 is a remote device")

enum { COUNT = 100 };

#pragma omp declare target
double variable[COUNT];
#pragma omp end declare target

int main(void) {
    int const me = ompx_rank_num(), other = 1 - me, host = omp_get_initial_device();
    double *const field = omp_calloc(COUNT, sizeof *field, ompx_symmetric_mem_alloc);
    double bytes[8] = {0};
    CHECK(ompx_num_ranks() == 2 && omp_get_num_devices() == 1);
#pragma omp target enter data map(to : field[0 : COUNT])
    CHECK(ompx_barrier() == 0);
    ompx_event_t event;
    REFUSED(ompx_target_put(other, field, 0, bytes, host, 8));
    REFUSED(ompx_target_put(other, field, host, field, 0, 8));
    REFUSED(ompx_target_get(bytes, host, other, field, 0, 8));
    REFUSED(ompx_target_get(field, 0, other, field, host, 8));
    REFUSED(ompx_target_put(me, field, 0, bytes, host, 8));
    REFUSED(ompx_target_put_nb(other, field, 0, bytes, host, 8, &event));
    REFUSED(ompx_target_get_nb(bytes, host, other, field, 0, 8, &event));
    REFUSED(ompx_target_put(other, bytes, 0, bytes, host, 8)); /* not mapped */
    REFUSED(ompx_target_put(other, variable, 0, bytes, host, 8));
    REFUSED(ompx_target_get(variable, 0, other, field, host, 8));
    size_t const rows[2] = {2, 2}, zero[2] = {0, 0}, square[2] = {8, 8};
    REFUSED(
        ompx_target_put_rect(other, field, 0, field, host, 8, 2, rows, zero, zero, square, square));
    REFUSED(
        ompx_target_get_rect(field, 0, other, field, host, 8, 2, rows, zero, zero, square, square));
    REFUSED(ompx_target_bcast(field, 0, 8, 0, ompx_group_world));
    REFUSED(ompx_target_allreduce(field, field, 0, 1, OMPX_DOUBLE, OMPX_SUM, ompx_group_world));
    ompx_segment_info_t info;
    REFUSED(ompx_target_segment_info(0, &info));
    REFUSED(ompx_target_free(field, 0));
    CHECK(ompx_target_alloc(8, 0, ompx_local_mem_alloc) == NULL);
    CHECK(strstr(ompx_last_error(), "device 0 is a remote device") != NULL);
    CHECK(strstr(ompx_last_error(), "docs/remote.md") != NULL);
    CHECK(strncmp(ompx_last_error(), me == 0 ? "rank 0 (" : "rank 1 (", 8) == 0);
    /* The way that the remedy names. */
#pragma omp target
    for (int i = 0; i < COUNT; ++i) {
        field[i] = 2;
    }
#pragma omp target update from(field[0 : COUNT])
    CHECK(ompx_barrier() == 0);
    CHECK(ompx_get(bytes, other, field, sizeof bytes) == 0);
    CHECK(bytes[0] == 2 && bytes[7] == 2);
    CHECK(ompx_barrier() == 0);
#pragma omp target exit data map(delete : field[0 : COUNT])
    if (me == 0) {
        puts("remote space: ok");
    }
    return 0;
}
