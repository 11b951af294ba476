// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "common/devices.h"

#include <omp.h>
#include <stdio.h>

static int is_host(int device) {
    int host = 1;
#pragma omp target map(from : host) device(device)
    host = omp_is_initial_device();
    return host;
}

static int parse(const char *text, device_range *range) {
    char rest = 0;
    if (sscanf(text, "%d:%d%c", &range->first, &range->count, &rest) == 2) {
        return 1;
    }
    range->first = 0;
    return sscanf(text, "%d%c", &range->count, &rest) == 1;
}

int devices_choose(const char *text, device_range *range, char *message, size_t message_size) {
    const int there = omp_get_num_devices();
    *range = (device_range){0, there};
    if (text != NULL && !parse(text, range)) {
        snprintf(message, message_size, "--devices needs FIRST:COUNT, not '%s'", text);
        return 0;
    }
    if (text != NULL && (range->first < 0 || range->count < 1 || range->first >= there ||
                         range->count > there - range->first)) {
        snprintf(message, message_size, "--devices %s: OpenMP shows %d device%s%s", text, there,
                 there == 1 ? "" : "s", there > 0 ? ", counted from 0" : "");
        return 0;
    }
    // With OMP_TARGET_OFFLOAD=DISABLED devices are counted, but not used.
    if (there == 0 || is_host(range->first)) {
        *range = (device_range){omp_get_initial_device(), 1};
    }
    return 1;
}
