// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef APPS_COMMON_CLOCK_H
#define APPS_COMMON_CLOCK_H

#include <time.h>

// Monotonic time in seconds.
static inline double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
