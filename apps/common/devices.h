// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Selects the OpenMP devices that a program drives by itself, with a part of the work on each.
#ifndef APPS_COMMON_DEVICES_H
#define APPS_COMMON_DEVICES_H

#include <stddef.h>

typedef struct device_range {
    int first, count; // device numbers first to first + count - 1
} device_range;

// `text` is "FIRST:COUNT", "COUNT" (from device 0), or NULL for all devices. If target regions run
// on the host, it is the only device. Returns 0 with a message if there are not enough devices.
int devices_choose(const char *text, device_range *range, char *message, size_t message_size);

#endif
