/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file diomp/device_words.h
 * Atomic operations of a GPU on a word that it can load and store: by target regions, and by the
 * runtime's kernel for those that other ranks request. Not an interface for programs.
 */
#ifndef DIOMP_DEVICE_WORDS_H
#define DIOMP_DEVICE_WORDS_H

#include "device_endpoint.h"
#include "device_memory.h"
#include "types.h"

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

/** Whether diomp_atomic_apply() knows the operator, for a type that atomics accept. */
DIOMP_ON_DEVICE_ int diomp_atomic_has(int type, int op) {
    switch (op) {
    case OMPX_SUM:
    case OMPX_MIN:
    case OMPX_MAX:
    case OMPX_REPLACE:
    case OMPX_NO_OP:
        return 1;
    case OMPX_BAND:
    case OMPX_BOR:
    case OMPX_BXOR:
        return type != OMPX_FLOAT && type != OMPX_DOUBLE;
    default:
        return 0;
    }
}

/** *result = *at; *at = *at op *operand, for a type that atomics accept. `result` may be null.
 * Returns a reason. */
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

/** Compare and swap of a word of 4 or 8 bytes; returns the old value. */
DIOMP_ON_DEVICE_ uint64_t diomp_atomic_exchange_if(char *at, uint64_t expected, uint64_t desired,
                                                   uint64_t nbytes) {
    return nbytes == 8 ? diomp_cas_u64(at, expected, desired)
                       : diomp_cas_u32(at, (uint32_t)expected, (uint32_t)desired);
}

#endif /* DIOMP_DEVICE_WORDS_H */
