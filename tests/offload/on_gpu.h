/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef DIOMP_TESTS_OFFLOAD_ON_GPU_H
#define DIOMP_TESTS_OFFLOAD_ON_GPU_H

#include <diomp.h>

/* Whether regions of the default device run code for a GPU. */
static int regions_run_on_gpu(void) {
    int gpu = 0;
#pragma omp target map(from : gpu)
    {
#if defined(DIOMP_FOR_GPU_)
        gpu = 1;
#else
        gpu = 0;
#endif
    }
    return gpu;
}

#endif
