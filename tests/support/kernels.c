/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Target regions for the tests of Fortran and Python, whose programs load libomptarget with this
 * library. */
#include <stdint.h>

__attribute__((visibility("default"))) void scale(double *array, int64_t count, double factor,
                                                  int device) {
#pragma omp target is_device_ptr(array) device(device)
    for (int64_t i = 0; i < count; ++i) {
        array[i] *= factor;
    }
}
