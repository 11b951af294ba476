/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * What transfers.py and sections.f90 are compared with: seconds per operation of put, get and
 * ompx_put_rect. Median of 15 rounds on rank 0, whose neighbour is rank 1. Prints "NAME BYTES
 * SECONDS". */
#include <diomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { rounds = 15, order = 1024, width = 256, edge = 64 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    double const x = *(const double *)a;
    double const y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(const char *name, size_t nbytes, double *seconds) {
    qsort(seconds, rounds, sizeof *seconds, by_value);
    printf("%s %zu %.4g\n", name, nbytes, seconds[rounds / 2]);
}

int main(void) {
    size_t const largest = (size_t)4 << 20;
    char *target = ompx_alloc(largest, 0, OMPX_MEM_SYMMETRIC);
    double *field = ompx_alloc(sizeof(double) * order * order, 0, OMPX_MEM_SYMMETRIC);
    char *source = ompx_alloc(largest, 0, OMPX_MEM_LOCAL);
    double *block = malloc(sizeof(double) * order * order);
    memset(target, 0, largest);
    memset(source, 1, largest);
    memset(field, 0, sizeof(double) * order * order);
    memset(block, 0, sizeof(double) * order * order);
    ompx_barrier();
    int const peer = ompx_num_ranks() - 1;
    double seconds[rounds];
    if (ompx_rank_num() == 0) {
        size_t const sizes[] = {8, 65536, 1048576, 4194304};
        for (int s = 0; s < 4; ++s) {
            int const count = s == 0 ? 20000 : (int)(((size_t)64 << 20) / sizes[s]);
            for (int is_get = 0; is_get < 2; ++is_get) {
                for (int r = 0; r < rounds; ++r) {
                    double const begin = now();
                    for (int i = 0; i < count; ++i) {
                        if (is_get) {
                            ompx_get(source, peer, target, sizes[s]);
                        } else {
                            ompx_put(peer, target, source, sizes[s]);
                        }
                    }
                    ompx_fence();
                    seconds[r] = (now() - begin) / count;
                }
                report(is_get ? "get" : "put", sizes[s], seconds);
            }
        }
        /* A block of width columns of the same arrays, and edge columns of one element. */
        size_t const shapes[2][2] = {{order, width}, {order, 1}};
        for (int k = 0; k < 2; ++k) {
            size_t const from[2] = {0, edge};
            size_t const extent[2] = {order, order};
            for (int r = 0; r < rounds; ++r) {
                double const begin = now();
                for (int i = 0; i < 50; ++i) {
                    ompx_put_rect(peer, field, block, sizeof(double), 2, shapes[k], from, from,
                                  extent, extent);
                }
                ompx_fence();
                seconds[r] = (now() - begin) / 50;
            }
            report("section", sizeof(double) * shapes[k][0] * shapes[k][1], seconds);
        }
    }
    ompx_barrier();
    return 0;
}
