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
#pragma omp target exit data map(release : values[0 : LENGTH], halo[0 : LENGTH])
    if (wrong != 0) {
        fprintf(stderr, "rank %d: %d wrong\n", rank, wrong);
    }
    return wrong != 0;
}
