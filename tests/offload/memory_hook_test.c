/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Device memory of LLVM 22's liboffload, with llvm/prototype/MemoryHook.cpp, on a stand-in for
 * CUDA's driver: it lies in the segment, and the other rank reads and writes it. */
#include "support/check.h"

#include <OffloadAPI.h>
#include <omp.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { LENGTH = 5000 };

#pragma omp begin declare target
int32_t in_the_image; /* libomptarget's plugin starts for an image */
#pragma omp end declare target

typedef struct devices {
    ol_device_handle_t gpu, host;
} devices;

static bool note(ol_device_handle_t device, void *data) {
    devices *const found = data;
    ol_platform_handle_t platform = NULL;
    ol_platform_backend_t backend = OL_PLATFORM_BACKEND_UNKNOWN;
    CHECK(olGetDeviceInfo(device, OL_DEVICE_INFO_PLATFORM, sizeof platform, &platform) == NULL);
    CHECK(olGetPlatformInfo(platform, OL_PLATFORM_INFO_BACKEND, sizeof backend, &backend) == NULL);
    if (backend == OL_PLATFORM_BACKEND_CUDA && found->gpu == NULL) {
        found->gpu = device;
    }
    if (backend == OL_PLATFORM_BACKEND_HOST) {
        found->host = device;
    }
    return true;
}

int main(void) {
    int const me = ompx_rank_num();
    int const other = 1 - me;
    int const host = omp_get_initial_device();
    CHECK(ompx_num_ranks() == 2 && omp_get_num_devices() > 0);
    CHECK(olInit() == NULL);
    devices found = {NULL, NULL};
    CHECK(olIterateDevices(note, &found) == NULL);
    CHECK(found.gpu != NULL && found.host != NULL);

    int32_t sent[LENGTH];
    int32_t got[LENGTH];
    for (int i = 0; i < LENGTH; ++i) {
        sent[i] = 10000 * me + i;
    }
    void *memory = NULL;
    CHECK(olMemAlloc(found.gpu, OL_ALLOC_TYPE_DEVICE, sizeof sent, &memory) == NULL);
    CHECK(memory != NULL);
    CHECK(olMemcpy(NULL, memory, found.gpu, sent, found.host, sizeof sent) == NULL);
    CHECK(ompx_barrier() == 0);
    /* Both have allocated the same, so that the own address stands for the other's. */
    CHECK(ompx_target_get(got, host, other, memory, 0, sizeof got) == 0);
    for (int i = 0; i < LENGTH; ++i) {
        CHECK(got[i] == 10000 * other + i);
    }
    CHECK(ompx_barrier() == 0);
    CHECK(ompx_target_put(other, memory, 0, sent, host, sizeof sent) == 0);
    CHECK(ompx_barrier() == 0);
    memset(got, 0, sizeof got);
    CHECK(olMemcpy(NULL, got, found.host, memory, found.gpu, sizeof got) == NULL);
    for (int i = 0; i < LENGTH; ++i) {
        CHECK(got[i] == 10000 * other + i);
    }
    CHECK(ompx_barrier() == 0);
    CHECK(olMemFree(memory) == NULL);
    /* What the hook does not take is liboffload's as before. */
    CHECK(olMemAlloc(found.gpu, OL_ALLOC_TYPE_HOST, 1000, &memory) == NULL);
    CHECK(olMemFree(memory) == NULL);
    printf("memory of liboffload: ok\n");
    return 0;
}
