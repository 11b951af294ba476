/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Maps the MiB of the argument and changes them in a region. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    size_t const count = (argc > 1 ? (size_t)atol(argv[1]) : 1) << 17;
    double *const all = malloc(count * sizeof *all);
    int is_host = 1;
    if (all == NULL) {
        return 1;
    }
    for (size_t i = 0; i < count; ++i) {
        all[i] = (double)i;
    }
#pragma omp target teams distribute parallel for map(tofrom : all[0 : count])
    for (size_t i = 0; i < count; ++i) {
        all[i] += 1;
    }
#pragma omp target map(from : is_host)
    is_host = omp_is_initial_device();
    for (size_t i = 0; i < count; ++i) {
        if (all[i] != (double)i + 1) {
            printf("wrong: %zu\n", i);
            return 1;
        }
    }
    puts(is_host ? "on the host" : "large map: ok");
    free(all);
    return is_host;
}
