// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// OpenMP's default device, for the apps that compute in target regions.
#ifndef APPS_COMMON_DEVICE_H
#define APPS_COMMON_DEVICE_H

#include <stddef.h>

// Returns 1 if the device is a GPU, whose threads should access neighbouring data in lockstep; 0 if
// it is a processor with caches and vector instructions (LLVM's host devices, or the host itself if
// there is no device).
int device_is_gpu(void);
// Returns the address of the device's copy of mapped data.
void *device_address(void *mapped);
// Returns the number of multiprocessors that run this process's regions: as many teams are resident
// together. 1 for processors, and for GPUs where it is not known (AMD).
int device_multiprocessors(void);
// For the report: "device 0 of 4 each (a processor, 2 threads)".
void device_describe(char *text, size_t text_size);

#endif
