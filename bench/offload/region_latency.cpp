/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Times of target regions and maps on the default device, for bench/compare-offload. Knows nothing
 * of DiOMP. Prints lines
 * "<what> <nbytes> <median us>". A sample is the mean of so many calls that it takes about a
 * millisecond. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 31 };

static char *array;
static size_t length;

static void region(void) {
#pragma omp target
    {
    }
}

static void map_to_and_from(void) {
#pragma omp target map(tofrom : array[0 : length])
    array[0] += 1;
}

static void enter_and_exit(void) {
#pragma omp target enter data map(alloc : array[0 : length])
#pragma omp target exit data map(release : array[0 : length])
}

static void allocate(void) {
    int const device = omp_get_default_device();
    omp_target_free(omp_target_alloc(length, device), device);
}

static int ascending(const void *left, const void *right) {
    double const l = *(const double *)left;
    double const r = *(const double *)right;
    return (l > r) - (l < r);
}

static void measure(const char *what, void (*call)(void)) {
    double samples[SAMPLES];
    for (int i = 0; i < 20; ++i) {
        call();
    }
    double const begin = omp_get_wtime();
    call();
    double const once = omp_get_wtime() - begin;
    int const calls = once > 1e-3 ? 1 : (int)(1e-3 / (once > 1e-7 ? once : 1e-7)) + 1;
    for (int i = 0; i < SAMPLES; ++i) {
        double const start = omp_get_wtime();
        for (int k = 0; k < calls; ++k) {
            call();
        }
        samples[i] = (omp_get_wtime() - start) / calls;
    }
    qsort(samples, SAMPLES, sizeof(double), ascending);
    printf("%s %zu %.4f\n", what, length, samples[SAMPLES / 2] * 1e6);
}

int main(void) {
    static const size_t sizes[] = {64, 4096, 65536, (size_t)1 << 20, (size_t)16 << 20};
    array = malloc((size_t)16 << 20);
    memset(array, 1, (size_t)16 << 20);
    length = 0;
    measure("region", region);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        length = sizes[i];
        measure("map-tofrom", map_to_and_from);
        measure("enter-exit", enter_and_exit);
        measure("target-alloc", allocate);
    }
    free(array);
    return 0;
}
