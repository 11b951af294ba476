// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pseudo-random numbers that depend only on their index, so that ranks and devices can compute them
// in any order.
#ifndef APPS_COMMON_SCATTER_H
#define APPS_COMMON_SCATTER_H

#include <stdint.h>

// Returns a number from -1 to 1, evenly distributed.
static inline double scatter(uint64_t number) {
    // Odd factors propagate low bits upwards, shifts propagate high bits downwards.
    uint64_t bits = (number ^ (number >> 31)) * 0x9e3779b97f4a7c15u + 0x632be59bd9b4e019u;
    bits = (bits ^ (bits >> 29)) * 0xd1342543de82ef95u;
    bits ^= bits >> 32;
    return (double)(bits >> 11) * 0x1p-52 - 1;
}

#endif
