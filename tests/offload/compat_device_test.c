/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * A program written for the published prototype: its includes, its names. Compiled with
 * -DDIOMP_COMPAT. */
#include <diomp.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { LENGTH = 512 };

int main(void) {
    __init_diomp_target(2);
    int const rank = omp_get_rank_num();
    int const ranks = omp_get_num_ranks();
    int const device = omp_get_default_device();
    double *values = malloc(LENGTH * sizeof(double));
    double *halo = malloc(LENGTH * sizeof(double));
    for (int i = 0; i < LENGTH; ++i) {
        values[i] = rank * 1000 + i;
        halo[i] = -1;
    }
#pragma omp target enter data map(to : values[0 : LENGTH], halo[0 : LENGTH])
    diomp_barrier();
    ompx_dput(halo, (rank + 1) % ranks, values, LENGTH * sizeof(double), device, device);
    diomp_waitALLRMA();
    diomp_barrier();
    int const from = (rank + ranks - 1) % ranks;
    int wrong = 0;
#pragma omp target map(tofrom : wrong)
    for (int i = 0; i < LENGTH; ++i) {
        wrong += halo[i] != from * 1000 + i;
    }
    double back = 0;
    ompx_dget(&back, from, values + 7, sizeof(double), omp_get_initial_device(), device);
    wrong += back != from * 1000 + 7;
    diomp_barrier();
    /* Collectives on the device copies: halo becomes the sum of what all ranks hold. */
    double total[2] = {-1, -1};
#pragma omp target enter data map(to : total)
    ompx_dallreduce(values, halo, LENGTH, ompx_d_double, ompx_d_sum, device);
    ompx_dreduce(values, total, 2, ompx_d_double, ompx_d_max, ranks - 1, device);
    ompx_dbcast(values, 3, ompx_d_double, ranks - 1, device);
#pragma omp target map(tofrom : wrong)
    for (int i = 0; i < LENGTH; ++i) {
        wrong += halo[i] != 1000.0 * ranks * (ranks - 1) / 2 + (double)ranks * i;
        wrong += values[i] != (i < 3 ? ranks - 1 : rank) * 1000 + i;
    }
    ompx_dallreduce(values, halo, LENGTH, ompx_d_double, ompx_d_avg, device);
#pragma omp target map(tofrom : wrong)
    wrong += halo[5] != 500.0 * (ranks - 1) + 5;
#pragma omp target exit data map(from : total)
    wrong += total[1] != (rank == ranks - 1 ? (ranks - 1) * 1000 + 1 : -1);
    diomp_barrier();
#pragma omp target exit data map(release : values[0 : LENGTH], halo[0 : LENGTH])
    if (wrong != 0) {
        fprintf(stderr, "rank %d: %d wrong\n", rank, wrong);
    }
    return wrong != 0;
}
