// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// On 64-bit Arm: opens the image of regions.c and runs its region take_roots as a device service
// would.
//   call_region IMAGE NAME_OF_THE_REGION
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

// What clang 19 makes of a target region: its environment, the mapped addresses, numbers as 64
// bits.
typedef void region(void *environment, int64_t n, double *values);

int main(int argc, char **argv) {
    if (argc != 3) {
        return 2;
    }
    void *image = dlopen(argv[1], RTLD_NOW);
    void *found = image == NULL ? NULL : dlsym(image, argv[2]);
    if (found == NULL) {
        printf("%s\n", dlerror());
        return 1;
    }
    region *take_roots = NULL;
    memcpy(&take_roots, &found, sizeof found); // ISO C knows no cast from data to functions

    enum { count = 100 };
    double values[count];
    for (int i = 0; i < count; ++i) {
        values[i] = (double)i * i;
    }
    take_roots(NULL, count, values);
    for (int i = 0; i < count; ++i) {
        if (values[i] != i) {
            printf("root %d is %g\n", i, values[i]);
            return 1;
        }
    }
    printf("call_region: ok\n");
    return 0;
}
