// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which of OpenMP's devices a program drives by itself, one share of the work on each.
#ifndef APPS_COMMON_DEVICES_H
#define APPS_COMMON_DEVICES_H

#include <stddef.h>

typedef struct device_range {
    int first, count; // device numbers first to first + count - 1
} device_range;

// Text is "FIRST:COUNT", "COUNT" (from device 0), or NULL for all devices. Where target regions run
// on the host, it is the only one. 0 with a message if there are not so many.
int devices_choose(const char *text, device_range *range, char *message, size_t message_size);

#endif
