/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file diomp/device_atomics.h
 * Atomics of target regions on GPUs. Not an interface for programs.
 */
#ifndef DIOMP_DEVICE_ATOMICS_H
#define DIOMP_DEVICE_ATOMICS_H

#include "device_call.h"
#include "device_ring.h"
#include "device_words.h"

/** Locates the target of an atomic; returns a reason. */
DIOMP_ON_DEVICE_ int diomp_atomic_locate(const struct diomp_endpoint *own, int rank,
                                         const void *target, uint64_t nbytes, char **at) {
    int const reason = diomp_device_locate(own, rank, target, nbytes, at);
    if (reason != DIOMP_DEVICE_OK) {
        return reason;
    }
    if (nbytes == 0) {
        return DIOMP_DEVICE_UNKNOWN_TYPE;
    }
    return ((uintptr_t)target & (nbytes - 1)) != 0 ? DIOMP_DEVICE_MISALIGNED : DIOMP_DEVICE_OK;
}

/** By the proxy; without a result the thread does not wait. */
DIOMP_DEVICE_CALL_ int diomp_ring_atomic_fetch(struct diomp_endpoint *own,
                                               const struct diomp_call *call, void *target,
                                               const void *operand, void *result, int type,
                                               int op) {
    struct diomp_request request = diomp_request_of(call, DIOMP_REQUEST_FETCH, target);
    uint64_t const nbytes = diomp_atomic_bytes(type);
    uint64_t value = 0;
    int status;
    if (!diomp_atomic_has(type, op)) {
        return diomp_device_fail(own, call, DIOMP_DEVICE_UNKNOWN_OP);
    }
    if (op != OMPX_NO_OP) {
        request.field[1] = diomp_load_bytes((const char *)operand, nbytes);
    }
    request.detail = (uint32_t)type | (uint32_t)op << 8;
    if (result == 0) {
        return diomp_ring_post(own, call, &request, 0);
    }
    status = diomp_ring_call(own, call, &request, &value, 1);
    if (status == OMPX_SUCCESS) {
        diomp_store_bytes((char *)result, value, nbytes);
    }
    return status;
}

DIOMP_DEVICE_CALL_ int diomp_ring_compare_swap(struct diomp_endpoint *own,
                                               const struct diomp_call *call, void *target,
                                               const void *expected, const void *desired,
                                               void *result, uint64_t nbytes) {
    struct diomp_request request = diomp_request_of(call, DIOMP_REQUEST_COMPARE_SWAP, target);
    uint64_t value = 0;
    int status;
    request.field[1] = diomp_load_bytes((const char *)expected, nbytes);
    request.field[2] = diomp_load_bytes((const char *)desired, nbytes);
    request.detail = (uint32_t)call->arguments[1];
    status = diomp_ring_call(own, call, &request, &value, 1);
    if (status == OMPX_SUCCESS && result != 0) {
        diomp_store_bytes((char *)result, value, nbytes);
    }
    return status;
}

DIOMP_ON_DEVICE_ int diomp_device_atomic_fetch(struct diomp_endpoint *own, int rank, void *target,
                                               const void *operand, void *result, int type,
                                               int op) {
    struct diomp_call const call = {
        DIOMP_CALL_ATOMIC_FETCH, rank, {(uintptr_t)target, (uint64_t)type, (uint64_t)op, 0}};
    char *at;
    int reason = diomp_atomic_locate(own, rank, target, diomp_atomic_bytes(type), &at);
    if (reason == DIOMP_DEVICE_OK && operand == 0 && op != OMPX_NO_OP) {
        reason = DIOMP_DEVICE_NULL;
    }
    if (reason == DIOMP_DEVICE_OK && at == 0) {
        return diomp_ring_atomic_fetch(own, &call, target, operand, result, type, op);
    }
    if (reason == DIOMP_DEVICE_OK) {
        reason = diomp_atomic_apply(at, operand, result, type, op);
    }
    return reason == DIOMP_DEVICE_OK ? OMPX_SUCCESS : diomp_device_fail(own, &call, reason);
}

DIOMP_ON_DEVICE_ int diomp_device_compare_swap(struct diomp_endpoint *own, int rank, void *target,
                                               const void *expected, const void *desired,
                                               void *result, int type) {
    struct diomp_call const call = {
        DIOMP_CALL_ATOMIC_COMPARE_SWAP, rank, {(uintptr_t)target, (uint64_t)type, 0, 0}};
    uint64_t const nbytes = diomp_atomic_bytes(type);
    uint64_t before = 0;
    uint64_t after = 0;
    char *at;
    int reason = diomp_atomic_locate(own, rank, target, nbytes, &at);
    if (reason == DIOMP_DEVICE_OK && (expected == 0 || desired == 0)) {
        reason = DIOMP_DEVICE_NULL;
    }
    if (reason != DIOMP_DEVICE_OK) {
        return diomp_device_fail(own, &call, reason);
    }
    if (at == 0) {
        return diomp_ring_compare_swap(own, &call, target, expected, desired, result, nbytes);
    }
    __builtin_memcpy(&before, expected, nbytes);
    __builtin_memcpy(&after, desired, nbytes);
    before = diomp_atomic_exchange_if(at, before, after, nbytes);
    if (result != 0) {
        __builtin_memcpy(result, &before, nbytes);
    }
    return OMPX_SUCCESS;
}

#endif /* DIOMP_DEVICE_ATOMICS_H */
