/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file diomp/device_waits.h
 * Waits for variables in target regions on GPUs. Not an interface for programs.
 */
#ifndef DIOMP_DEVICE_WAITS_H
#define DIOMP_DEVICE_WAITS_H

#include "device_call.h"

/* ---- Waits ---- */

/** How a wait compares: `width` is 1, 2, 4 or 8 bytes. */
struct diomp_condition {
    int width;
    int is_signed;
    int cmp; /**< ompx_cmp_t */
    uint64_t value;
};

/** The low `width` bytes of a word, as a number of 64 bits. */
DIOMP_ON_DEVICE_ uint64_t diomp_extend(uint64_t low, struct diomp_condition how) {
    int const unused_bits = 64 - 8 * how.width;
    uint64_t const high = low << unused_bits;
    return how.is_signed ? (uint64_t)((int64_t)high >> unused_bits) : high >> unused_bits;
}

DIOMP_ON_DEVICE_ uint64_t diomp_device_load(const void *at, struct diomp_condition how) {
    uintptr_t const word = (uintptr_t)at & ~(uintptr_t)3; /* loads of 8 and 16 bits have no order */
    if (how.width == 8) {
        return diomp_acquire_64(at);
    }
    return diomp_extend((uint64_t)diomp_acquire_32((const void *)word) >> ((uintptr_t)at & 3) * 8,
                        how);
}

DIOMP_ON_DEVICE_ int diomp_device_holds(uint64_t current, struct diomp_condition how) {
    /* Signed numbers keep their order as unsigned ones when their sign bit changes. */
    uint64_t const flip = how.is_signed ? (uint64_t)1 << 63 : 0;
    uint64_t const a = current ^ flip;
    uint64_t const b = how.value ^ flip;
    switch (how.cmp) {
    case OMPX_CMP_EQ:
        return a == b;
    case OMPX_CMP_NE:
        return a != b;
    case OMPX_CMP_GT:
        return a > b;
    case OMPX_CMP_GE:
        return a >= b;
    case OMPX_CMP_LT:
        return a < b;
    default:
        return a <= b;
    }
}

/** Checks a variable that a thread waits for; returns a reason. */
DIOMP_ON_DEVICE_ int diomp_device_check_wait(const struct diomp_endpoint *own, const void *variable,
                                             struct diomp_condition how) {
    int const reason = diomp_device_check_local(own, variable, (uint64_t)how.width);
    if (reason != DIOMP_DEVICE_OK) {
        return reason;
    }
    if (how.cmp < OMPX_CMP_EQ || how.cmp > OMPX_CMP_LE) {
        return DIOMP_DEVICE_UNKNOWN_CMP;
    }
    return ((uintptr_t)variable & (uintptr_t)(how.width - 1)) != 0 ? DIOMP_DEVICE_MISALIGNED
                                                                   : DIOMP_DEVICE_OK;
}

/** Polls until the condition holds; ends by the timeout, or when the job is broken. */
DIOMP_DEVICE_CALL_ int diomp_device_wait(struct diomp_endpoint *own, const struct diomp_call *call,
                                         const void *variable, struct diomp_condition how) {
    struct diomp_timeout timeout = {0, 0, 0};
    int reason = diomp_device_check_wait(own, variable, how);
    if (reason != DIOMP_DEVICE_OK) {
        return diomp_device_fail(own, call, reason);
    }
    for (;;) {
        uint64_t const current = diomp_device_load(variable, how);
        if (diomp_device_holds(current, how)) {
            return OMPX_SUCCESS;
        }
        reason = diomp_device_gives_up(own, &timeout);
        if (reason != DIOMP_DEVICE_OK) {
            return diomp_device_record(own, call, reason, diomp_device_status(reason), current);
        }
    }
}

/** One poll: 1 if the condition holds, otherwise 0. */
DIOMP_DEVICE_CALL_ int diomp_device_test(struct diomp_endpoint *own, const struct diomp_call *call,
                                         const void *variable, struct diomp_condition how) {
    int const reason = diomp_device_check_wait(own, variable, how);
    if (reason != DIOMP_DEVICE_OK) {
        return diomp_device_fail(own, call, reason);
    }
    return diomp_device_holds(diomp_device_load(variable, how), how);
}

DIOMP_DEVICE_CALL_ int diomp_device_wait_until(struct diomp_endpoint *own, const void *variable,
                                               int type, int cmp, const void *value) {
    struct diomp_call call = {
        DIOMP_CALL_WAIT_UNTIL, -1, {(uintptr_t)variable, (uint64_t)type, (uint64_t)cmp, 0}};
    /* OMPX_INT8, UINT8, INT16, ... UINT64 are 1 to 8. */
    struct diomp_condition how = {1 << ((type - OMPX_INT8) / 2 & 3), type % 2 == OMPX_INT8 % 2, cmp,
                                  0};
    if (type < OMPX_INT8 || type > OMPX_UINT64) {
        return diomp_device_fail(own, &call, DIOMP_DEVICE_UNKNOWN_TYPE);
    }
    if (value == 0) {
        return diomp_device_fail(own, &call, DIOMP_DEVICE_NULL);
    }
    __builtin_memcpy(&how.value, value, (size_t)how.width);
    how.value = diomp_extend(how.value, how);
    call.arguments[3] = how.value;
    return diomp_device_wait(own, &call, variable, how);
}

#endif /* DIOMP_DEVICE_WAITS_H */
