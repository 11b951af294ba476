/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * A library with a region and a variable, for programs that have neither. */
#include <omp.h>

static int count = 10;
#pragma omp declare target to(count)

int next_count(int device);
int next_count(int device) {
    int value = -1;
#pragma omp target device(device) map(from : value)
    value = ++count;
    return device < omp_get_num_devices() ? value : -1;
}
