// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "common/device.h"

#include <omp.h>
#include <stdio.h>

int device_is_gpu(void) {
    int gpu = 0;
#pragma omp target map(from : gpu)
    {
#if defined(__NVPTX__) || defined(__AMDGCN__)
        gpu = 1;
#else
        gpu = 0;
#endif
    }
    return gpu;
}

void *device_address(void *mapped) {
    void *address = NULL;
#pragma omp target data use_device_ptr(mapped)
    address = mapped;
    return address;
}

void device_describe(char *text, size_t text_size) {
    const int devices = omp_get_num_devices();
    if (devices == 0) {
        snprintf(text, text_size, "no device (%d threads each)", omp_get_max_threads());
    } else if (device_is_gpu()) {
        snprintf(text, text_size, "device %d of %d each", omp_get_default_device(), devices);
    } else {
        snprintf(text, text_size, "device %d of %d each (a processor, %d threads)",
                 omp_get_default_device(), devices, omp_get_max_threads());
    }
}

int device_multiprocessors(void) {
    enum { MOST = 1024, TEAMS = 4096 };
    char used[MOST] = {0};
    if (!device_is_gpu()) {
        return 1;
    }
    // Each team notes where it runs; there are enough of them for all.
#pragma omp target teams num_teams(TEAMS) thread_limit(32) map(tofrom : used)
    {
#if defined(__NVPTX__)
        used[__nvvm_read_ptx_sreg_smid() % MOST] = 1;
#else
        used[0] = 1;
#endif
    }
    int count = 0;
    for (int i = 0; i < MOST; ++i) {
        count += used[i];
    }
    return count;
}
