// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The contribution of a row to the checksum, on host and device.
#ifndef MINIMOD_DIGEST_H
#define MINIMOD_DIGEST_H

#include <stdint.h>
#include <string.h>

// Returns FNV-1a over the row's position (in the whole grid) and bits. Rows are added up, so their
// order does not matter.
static inline uint64_t row_digest(const float *row, int nz, int x, int y) {
    uint64_t hash = 14695981039346656037u;
    const uint32_t place[2] = {(uint32_t)x, (uint32_t)y};
    for (int z = -2; z < nz; ++z) {
        uint32_t bits = place[(z + 2) & 1];
        if (z >= 0) {
            memcpy(&bits, &row[z], sizeof bits);
        }
        hash = (hash ^ bits) * 1099511628211u;
    }
    return hash;
}

#endif
