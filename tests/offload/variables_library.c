/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * What variables_test.c loads: a library with an image of its own. */
#include <stdint.h>

#pragma omp declare target
int64_t of_the_library[16];
#pragma omp end declare target

int64_t first_on_device(int device);

int64_t first_on_device(int device) {
    int64_t seen = 0;
#pragma omp target device(device) map(from : seen)
    seen = of_the_library[0];
    return seen;
}
