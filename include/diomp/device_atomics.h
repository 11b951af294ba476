/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file diomp/device_atomics.h
 * Atomics of target regions on GPUs. Not an interface for programs.
 */
#ifndef DIOMP_DEVICE_ATOMICS_H
#define DIOMP_DEVICE_ATOMICS_H

#include "device_call.h"
#include "device_ring.h"

/* ---- Atomics ---- */

/* Operators on the bits of a word, and those that depend on its type. */
#define DIOMP_ATOMIC_BITS_(op_, function)                                                          \
    case op_:                                                                                      \
        word = function(at, word);                                                                 \
        break;
#define DIOMP_ATOMIC_VALUE_(op_, function, type)                                                   \
    case op_: {                                                                                    \
        type value;                                                                                \
        __builtin_memcpy(&value, &word, sizeof(value));                                            \
        value = function(at, value);                                                               \
        __builtin_memcpy(&word, &value, sizeof(word));                                             \
        break;                                                                                     \
    }
#define DIOMP_ATOMIC_INTEGER_(bits)                                                                \
    DIOMP_ATOMIC_BITS_(OMPX_SUM, diomp_fetch_add_##bits)                                           \
    DIOMP_ATOMIC_BITS_(OMPX_BAND, diomp_fetch_and_##bits)                                          \
    DIOMP_ATOMIC_BITS_(OMPX_BOR, diomp_fetch_or_##bits)                                            \
    DIOMP_ATOMIC_BITS_(OMPX_BXOR, diomp_fetch_xor_##bits)

/* One type: *result = *at; *at = *at op *operand. Returns a reason. */
#define DIOMP_ATOMIC_TYPE_(suffix, type, bits, width, sums)                                        \
    DIOMP_ON_DEVICE_ int diomp_atomic_##suffix(char *at, const void *operand, void *result,        \
                                               int op) {                                           \
        width word = 0;                                                                            \
        if (op != OMPX_NO_OP) {                                                                    \
            __builtin_memcpy(&word, operand, sizeof(word));                                        \
        }                                                                                          \
        switch (op) {                                                                              \
        sums DIOMP_ATOMIC_VALUE_(OMPX_MIN, diomp_fetch_min_##suffix, type)                         \
            DIOMP_ATOMIC_VALUE_(OMPX_MAX, diomp_fetch_max_##suffix, type)                          \
                DIOMP_ATOMIC_BITS_(OMPX_REPLACE, diomp_fetch_swap_##bits) case OMPX_NO_OP:         \
            word = diomp_cas_##bits(at, 0, 0);                                                     \
            break;                                                                                 \
        default:                                                                                   \
            return DIOMP_DEVICE_UNKNOWN_OP;                                                        \
        }                                                                                          \
        if (result != 0) {                                                                         \
            __builtin_memcpy(result, &word, sizeof(word));                                         \
        }                                                                                          \
        return DIOMP_DEVICE_OK;                                                                    \
    }
DIOMP_ATOMIC_TYPE_(s32, int32_t, u32, uint32_t, DIOMP_ATOMIC_INTEGER_(u32))
DIOMP_ATOMIC_TYPE_(u32, uint32_t, u32, uint32_t, DIOMP_ATOMIC_INTEGER_(u32))
DIOMP_ATOMIC_TYPE_(s64, int64_t, u64, uint64_t, DIOMP_ATOMIC_INTEGER_(u64))
DIOMP_ATOMIC_TYPE_(u64, uint64_t, u64, uint64_t, DIOMP_ATOMIC_INTEGER_(u64))
DIOMP_ATOMIC_TYPE_(f32, float, u32, uint32_t,
                   DIOMP_ATOMIC_VALUE_(OMPX_SUM, diomp_fetch_add_f32, float))
DIOMP_ATOMIC_TYPE_(f64, double, u64, uint64_t,
                   DIOMP_ATOMIC_VALUE_(OMPX_SUM, diomp_fetch_add_f64, double))

/** Bytes of a type that atomics accept; 0: none of them. */
DIOMP_ON_DEVICE_ uint64_t diomp_atomic_bytes(int type) {
    switch (type) {
    case OMPX_INT32:
    case OMPX_UINT32:
    case OMPX_FLOAT:
        return 4;
    case OMPX_INT64:
    case OMPX_UINT64:
    case OMPX_DOUBLE:
        return 8;
    default:
        return 0;
    }
}

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

DIOMP_ON_DEVICE_ int diomp_atomic_apply(char *at, const void *operand, void *result, int type,
                                        int op) {
    switch (type) {
    case OMPX_INT32:
        return diomp_atomic_s32(at, operand, result, op);
    case OMPX_UINT32:
        return diomp_atomic_u32(at, operand, result, op);
    case OMPX_INT64:
        return diomp_atomic_s64(at, operand, result, op);
    case OMPX_UINT64:
        return diomp_atomic_u64(at, operand, result, op);
    case OMPX_FLOAT:
        return diomp_atomic_f32(at, operand, result, op);
    default:
        return diomp_atomic_f64(at, operand, result, op);
    }
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
    if (op < 0 || op > OMPX_NO_OP) {
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
    if (nbytes == 8) {
        __builtin_memcpy(&before, expected, 8);
        __builtin_memcpy(&after, desired, 8);
        before = diomp_cas_u64(at, before, after);
    } else {
        __builtin_memcpy(&before, expected, 4);
        __builtin_memcpy(&after, desired, 4);
        before = diomp_cas_u32(at, (uint32_t)before, (uint32_t)after);
    }
    if (result != 0) {
        __builtin_memcpy(result, &before, nbytes);
    }
    return OMPX_SUCCESS;
}

#endif /* DIOMP_DEVICE_ATOMICS_H */
