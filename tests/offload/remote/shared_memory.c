/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Requires what no remote device has. */
#include <omp.h>
#include <stdio.h>

#pragma omp requires unified_shared_memory

int main(void) {
    int value = 1, on_host = 0;
    int *const pointer = &value;
#pragma omp target map(from : on_host)
    {
        *pointer += 1;
        on_host = omp_is_initial_device();
    }
    printf("%d on %s\n", value, on_host ? "the host" : "a device");
    return 0;
}
