/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file diomp/device_request.h
 * The words of a request, for the device that stores them and the proxy that reads them; layout in
 * diomp/device_endpoint.h. Not an interface for programs.
 */
#ifndef DIOMP_DEVICE_REQUEST_H
#define DIOMP_DEVICE_REQUEST_H

#include "device_endpoint.h"

#define DIOMP_ON_BOTH_ static inline __attribute__((always_inline, unused))

DIOMP_ON_BOTH_ uint64_t diomp_lap_of(uint64_t index, uint64_t slot_bits) {
    return ((index >> slot_bits) + 1) & 0xff;
}

DIOMP_ON_BOTH_ void diomp_request_pack(const struct diomp_request *from, uint64_t lap,
                                       uint64_t words[8]) {
    uint64_t high = from->operation & 0xff;
    int i = 0;
    for (i = 0; i < 6; ++i) {
        words[i] = from->field[i] << 8 | lap;
        high |= (from->field[i] >> 56) << (8 + 8 * i);
    }
    words[6] = (uint64_t)(uint32_t)from->rank << 8 | (uint64_t)(from->call & 0xff) << 40 |
               (uint64_t)from->detail << 48 | lap;
    words[7] = high << 8 | lap;
}

DIOMP_ON_BOTH_ void diomp_request_unpack(const uint64_t words[8], struct diomp_request *to) {
    uint64_t const high = words[7] >> 8;
    int i = 0;
    for (i = 0; i < 6; ++i) {
        to->field[i] = words[i] >> 8 | (high >> (8 + 8 * i)) << 56;
    }
    to->operation = (uint32_t)(high & 0xff);
    to->rank = (int32_t)(uint32_t)(words[6] >> 8);
    to->call = (uint32_t)(words[6] >> 40) & 0xff;
    to->detail = (uint32_t)(words[6] >> 48);
}

#endif /* DIOMP_DEVICE_REQUEST_H */
