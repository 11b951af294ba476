// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A program with target regions that knows nothing of DiOMP. With an argument it has to run on a
// device of its own.
#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>

// Also where this is compiled for the device, whose own char has no sign.
_Static_assert((char)-1 < 0, "char differs between host and device");

enum { count = 1000 };

int64_t sum_of_squares(const int64_t *values, int n); // regions_cpp.cpp

static void take_roots(double *values, int n) {
#pragma omp target teams distribute parallel for map(tofrom : values[0 : n])
    for (int i = 0; i < n; ++i) {
        values[i] = sqrt(values[i]);
    }
}

int main(int argc, char **argv) {
    (void)argv;
    double roots[count];
    int64_t whole[count];
    int on_host = 1;
    for (int i = 0; i < count; ++i) {
        roots[i] = (double)i * i;
        whole[i] = i;
    }
    take_roots(roots, count);
    for (int i = 0; i < count; ++i) {
        if (roots[i] != i) {
            printf("root %d is %g\n", i, roots[i]);
            return 1;
        }
    }
    if (sum_of_squares(whole, count) != (int64_t)(count - 1) * count * (2 * count - 1) / 6) {
        printf("a wrong sum\n");
        return 1;
    }
#pragma omp target map(from : on_host)
    on_host = omp_is_initial_device();
    printf("regions: ok on %s\n", on_host ? "the host" : "a device");
    return argc > 1 && on_host ? 1 : 0;
}
