/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * A put with fence to the other rank's host memory, and device to device, in turn, for
 * bench/compare-offload. 2 ranks; rank 0 puts. Prints lines "<what> <nbytes> <median us>". */
#include <diomp.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 41, KINDS = 3 };

static int device;

struct arrays {
    char *source, *target;
};

static void put_host(struct arrays a, size_t nbytes) {
    ompx_put(1, a.target, a.source, nbytes);
    ompx_fence();
}

static void put_device(struct arrays a, size_t nbytes) {
    ompx_target_put(1, a.target, device, a.source, device, nbytes);
    ompx_fence();
}

static int ascending(const void *left, const void *right) {
    double const l = *(const double *)left;
    double const r = *(const double *)right;
    return (l > r) - (l < r);
}

static double sample(void (*put)(struct arrays, size_t), struct arrays a, size_t nbytes,
                     int calls) {
    double const start = omp_get_wtime();
    for (int k = 0; k < calls; ++k) {
        put(a, nbytes);
    }
    return (omp_get_wtime() - start) / calls;
}

int main(void) {
    static const size_t sizes[] = {8, 4096, 65536, (size_t)1 << 20, (size_t)16 << 20};
    static const char *const names[KINDS] = {"host-put", "device-put", "mapped-put"};
    size_t const most = (size_t)16 << 20;
    device = omp_get_default_device();
    struct arrays a[KINDS];
    a[0].source = omp_alloc(most, ompx_symmetric_mem_alloc);
    a[0].target = omp_alloc(most, ompx_symmetric_mem_alloc);
    a[1].source = ompx_target_alloc(most, device, ompx_symmetric_mem_alloc);
    a[1].target = ompx_target_alloc(most, device, ompx_symmetric_mem_alloc);
    char *source = a[2].source = malloc(most);
    char *target = a[2].target = malloc(most);
    memset(source, 3, most);
    memset(target, 4, most);
#pragma omp target enter data map(to : source[0 : most], target[0 : most])
    memset(a[0].source, 1, most);
    ompx_target_put(ompx_get_rank_num(), a[1].source, device, source, omp_get_initial_device(),
                    most);
    ompx_barrier();
    if (ompx_get_rank_num() == 0) {
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
            double samples[KINDS][SAMPLES];
            int const calls = (int)((size_t)4 << 20) / (int)(sizes[i] + 200) + 1;
            for (int s = -2; s < SAMPLES; ++s) {
                for (int kind = 0; kind < KINDS; ++kind) {
                    double const t =
                        sample(kind == 0 ? put_host : put_device, a[kind], sizes[i], calls);
                    if (s >= 0) {
                        samples[kind][s] = t;
                    }
                }
            }
            for (int kind = 0; kind < KINDS; ++kind) {
                qsort(samples[kind], SAMPLES, sizeof(double), ascending);
                printf("%s %zu %.5f\n", names[kind], sizes[i], samples[kind][SAMPLES / 2] * 1e6);
            }
        }
    }
    ompx_barrier();
#pragma omp target exit data map(release : source[0 : most], target[0 : most])
    ompx_target_free(a[1].target, device);
    ompx_target_free(a[1].source, device);
    return 0;
}
