/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file diomp/device_calls.h
 * The calls of target regions on GPUs, on an endpoint: what diomp/device.h gives the names of
 * diomp.h. Not an interface for programs; the tests call it on processors.
 */
#ifndef DIOMP_DEVICE_CALLS_H
#define DIOMP_DEVICE_CALLS_H

#include "atomic.h"
#include "device_endpoint.h"
#include "device_memory.h"
#include "memory.h"
#include "process.h"
#include "status.h"
#include "sync.h"
#include "transfer.h"
#include "wait.h"

#define DIOMP_DEVICE_CALL_ static __attribute__((unused))

/* ---- Errors ---- */

DIOMP_ON_DEVICE_ int diomp_device_status(int reason) {
    switch (reason) {
    case DIOMP_DEVICE_OK:
        return OMPX_SUCCESS;
    case DIOMP_DEVICE_RANK:
        return OMPX_ERR_RANK;
    case DIOMP_DEVICE_NOT_GLOBAL:
    case DIOMP_DEVICE_NOT_SYMMETRIC:
    case DIOMP_DEVICE_HOST_MEMORY:
        return OMPX_ERR_ADDRESS;
    case DIOMP_DEVICE_PAST_END:
        return OMPX_ERR_RANGE;
    case DIOMP_DEVICE_UNREACHABLE:
        return OMPX_ERR_UNSUPPORTED;
    case DIOMP_DEVICE_VERSION:
        return OMPX_ERR_STATE;
    case DIOMP_DEVICE_TIMED_OUT:
        return OMPX_ERR_TIMEOUT;
    case DIOMP_DEVICE_JOB_BROKEN:
        return OMPX_ERR_PEER;
    default:
        return OMPX_ERR_ARG;
    }
}

/** A call with its arguments, as its error message shows them. */
struct diomp_call {
    int which; /**< enum diomp_device_call */
    int rank;  /**< -1: the call names none */
    uint64_t arguments[4];
};

/** Keeps the call for the host unless an earlier error is waiting there; returns `status`. */
DIOMP_DEVICE_CALL_ __attribute__((noinline)) int diomp_device_record(struct diomp_endpoint *own,
                                                                     const struct diomp_call *call,
                                                                     int reason, int status,
                                                                     uint64_t seen) {
    struct diomp_device_error *const error = own->error;
    uint64_t const taken = diomp_acquire_64(&error->taken);
    int i;
    if (diomp_claim_64(&own->error_claim, taken, taken + 1) != taken) {
        return status;
    }
    error->status = status;
    error->reason = reason;
    error->call = call->which;
    error->rank = call->rank;
    for (i = 0; i < 4; ++i) {
        error->arguments[i] = call->arguments[i];
    }
    error->seen = seen;
    diomp_fence_system();
    diomp_release_64(&error->written, taken + 1);
    return status;
}

DIOMP_ON_DEVICE_ int diomp_device_fail(struct diomp_endpoint *own, const struct diomp_call *call,
                                       int reason) {
    return diomp_device_record(own, call, reason, diomp_device_status(reason), 0);
}

/* ---- Addresses ---- */

/**
 * Where [pointer, pointer + nbytes) of `rank` lies for this device: *at receives the address that
 * it can load and store, or null if only the proxy reaches it. Returns a reason.
 */
DIOMP_ON_DEVICE_ int diomp_device_locate(const struct diomp_endpoint *own, int rank,
                                         const void *pointer, uint64_t nbytes, char **at) {
    uint64_t const offset = (uintptr_t)pointer - own->base;
    *at = 0;
    if ((unsigned)rank >= (unsigned)own->num_ranks) {
        return DIOMP_DEVICE_RANK;
    }
    if (nbytes == 0) {
        return DIOMP_DEVICE_OK;
    }
    if (nbytes > (uint64_t)INT64_MAX) {
        return DIOMP_DEVICE_SIZE;
    }
    if (offset < own->segment_bytes) {
        const struct diomp_peer *const peer = &own->peers[rank];
        if (nbytes > own->segment_bytes - offset) {
            return DIOMP_DEVICE_PAST_END;
        }
        if (offset < own->mapped_begin &&
            (offset >= own->symmetric_end || nbytes > own->symmetric_end - offset)) {
            return offset < own->symmetric_end ? DIOMP_DEVICE_PAST_END : DIOMP_DEVICE_NOT_SYMMETRIC;
        }
        if (peer->base != 0 &&
            (offset >= peer->back_begin ||
             (offset < peer->front_bytes && nbytes <= peer->front_bytes - offset))) {
            *at = (char *)(uintptr_t)(peer->base + offset);
        }
        return DIOMP_DEVICE_OK;
    }
    if (pointer == 0) {
        return DIOMP_DEVICE_NULL;
    }
    return (uintptr_t)pointer - own->host_begin < own->host_bytes ? DIOMP_DEVICE_OK
                                                                  : DIOMP_DEVICE_NOT_GLOBAL;
}

/** Whether the local side of a transfer, or a variable that a thread waits for, is memory that this
 * device can load; returns a reason. */
DIOMP_ON_DEVICE_ int diomp_device_check_local(const struct diomp_endpoint *own, const void *pointer,
                                              uint64_t nbytes) {
    if (pointer == 0) {
        return nbytes == 0 ? DIOMP_DEVICE_OK : DIOMP_DEVICE_NULL;
    }
    return (uintptr_t)pointer - own->host_begin < own->host_bytes ? DIOMP_DEVICE_HOST_MEMORY
                                                                  : DIOMP_DEVICE_OK;
}

/* ---- Transfers ---- */

/** The part of the calling thread among those of its team that make a call together. */
struct diomp_part {
    uint64_t index;
    uint64_t count;
};

/** What this device cannot load or store itself. The only place that asks the proxy. */
DIOMP_ON_DEVICE_ int diomp_device_by_proxy(struct diomp_endpoint *own,
                                           const struct diomp_call *call) {
    return diomp_device_fail(own, call, DIOMP_DEVICE_UNREACHABLE);
}

DIOMP_DEVICE_CALL_ int diomp_device_put(struct diomp_endpoint *own, int which, int rank, void *dst,
                                        const void *src, uint64_t nbytes, struct diomp_part part) {
    struct diomp_call const call = {which, rank, {(uintptr_t)dst, (uintptr_t)src, nbytes, 0}};
    char *at;
    int reason = diomp_device_locate(own, rank, dst, nbytes, &at);
    if (reason == DIOMP_DEVICE_OK) {
        reason = diomp_device_check_local(own, src, nbytes);
    }
    if (reason != DIOMP_DEVICE_OK) {
        return diomp_device_fail(own, &call, reason);
    }
    if (at == 0) {
        return nbytes == 0 ? OMPX_SUCCESS : diomp_device_by_proxy(own, &call);
    }
    if (part.count > 1 || !diomp_copy_word(at, src, nbytes)) {
        diomp_copy(at, src, nbytes, part.index, part.count);
    }
    return OMPX_SUCCESS;
}

DIOMP_DEVICE_CALL_ int diomp_device_get(struct diomp_endpoint *own, int which, void *dst, int rank,
                                        const void *src, uint64_t nbytes, struct diomp_part part) {
    struct diomp_call const call = {which, rank, {(uintptr_t)dst, (uintptr_t)src, nbytes, 0}};
    char *at;
    int reason = diomp_device_locate(own, rank, src, nbytes, &at);
    if (reason == DIOMP_DEVICE_OK) {
        reason = diomp_device_check_local(own, dst, nbytes);
    }
    if (reason != DIOMP_DEVICE_OK) {
        return diomp_device_fail(own, &call, reason);
    }
    if (at == 0) {
        return nbytes == 0 ? OMPX_SUCCESS : diomp_device_by_proxy(own, &call);
    }
    if (part.count > 1 || !diomp_copy_word(dst, at, nbytes)) {
        diomp_copy(dst, at, nbytes, part.index, part.count);
    }
    return OMPX_SUCCESS;
}

/** Arguments of a put with signal. */
struct diomp_signal {
    uint64_t *at;
    uint64_t value;
    int op; /**< ompx_signal_op_t */
};

/** Checks a signal and locates it at `rank`; returns a reason. */
DIOMP_ON_DEVICE_ int diomp_device_locate_signal(const struct diomp_endpoint *own, int rank,
                                                struct diomp_signal signal, char **at) {
    int const reason = diomp_device_locate(own, rank, signal.at, sizeof(*signal.at), at);
    if (reason != DIOMP_DEVICE_OK) {
        return reason;
    }
    if (((uintptr_t)signal.at & 7) != 0) {
        return DIOMP_DEVICE_MISALIGNED;
    }
    return signal.op == OMPX_SIGNAL_SET || signal.op == OMPX_SIGNAL_ADD ? DIOMP_DEVICE_OK
                                                                        : DIOMP_DEVICE_UNKNOWN_OP;
}

/** Updates a signal that this device can store, after all that the calling thread has written and
 * seen. */
DIOMP_ON_DEVICE_ void diomp_device_signal(char *at, struct diomp_signal signal) {
    diomp_fence_system();
    if (signal.op == OMPX_SIGNAL_SET) {
        diomp_release_64(at, signal.value);
    } else {
        diomp_fetch_add_u64(at, signal.value);
    }
}

/** The part of a thread in a put with signal by a team. *at receives where the signal is to be
 * updated when all threads have returned; null: it is not to be updated. */
DIOMP_DEVICE_CALL_ int diomp_device_team_put_signal(struct diomp_endpoint *own, int rank, void *dst,
                                                    const void *src, uint64_t nbytes,
                                                    struct diomp_signal signal,
                                                    struct diomp_part part, char **at) {
    int const which = part.count > 1 ? DIOMP_CALL_TEAM_PUT_SIGNAL : DIOMP_CALL_PUT_SIGNAL;
    struct diomp_call const call = {
        which, rank, {(uintptr_t)dst, (uintptr_t)src, nbytes, (uintptr_t)signal.at}};
    int const reason = diomp_device_locate_signal(own, rank, signal, at);
    int status;
    if (reason != DIOMP_DEVICE_OK) {
        *at = 0;
        return diomp_device_fail(own, &call, reason);
    }
    if (*at == 0) {
        return diomp_device_by_proxy(own, &call);
    }
    status = diomp_device_put(own, which, rank, dst, src, nbytes, part);
    if (status != OMPX_SUCCESS) {
        *at = 0;
    }
    return status;
}

DIOMP_DEVICE_CALL_ int diomp_device_put_signal(struct diomp_endpoint *own, int rank, void *dst,
                                               const void *src, uint64_t nbytes,
                                               struct diomp_signal signal) {
    struct diomp_part const alone = {0, 1};
    char *at;
    int const status =
        diomp_device_team_put_signal(own, rank, dst, src, nbytes, signal, alone, &at);
    if (at != 0) {
        diomp_device_signal(at, signal);
    }
    return status;
}

/* ---- Waits ---- */

/** How a wait compares: `width` is 4 or 8 bytes. */
struct diomp_condition {
    int width;
    int is_signed;
    int cmp; /**< ompx_cmp_t */
    uint64_t value;
};

DIOMP_ON_DEVICE_ uint64_t diomp_device_load(const void *at, struct diomp_condition how) {
    if (how.width == 8) {
        return diomp_acquire_64(at);
    }
    return how.is_signed ? (uint64_t)(int64_t)(int32_t)diomp_acquire_32(at) : diomp_acquire_32(at);
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

/* A wait looks at the clock after so many polls, and over PCIe at the flag of the job after so many
 * nanoseconds. */
#define DIOMP_POLLS_PER_LOOK_ 32
#define DIOMP_NS_PER_FLAG_ 20000

/** Polls until the condition holds; ends by the timeout, or when the job is broken. */
DIOMP_DEVICE_CALL_ int diomp_device_wait(struct diomp_endpoint *own, const struct diomp_call *call,
                                         const void *variable, struct diomp_condition how) {
    uint64_t begin = 0;
    uint64_t last_look = 0;
    int polls = 0;
    int reason = diomp_device_check_wait(own, variable, how);
    if (reason != DIOMP_DEVICE_OK) {
        return diomp_device_fail(own, call, reason);
    }
    for (;;) {
        uint64_t const current = diomp_device_load(variable, how);
        uint64_t now;
        if (diomp_device_holds(current, how)) {
            return OMPX_SUCCESS;
        }
        if (++polls % DIOMP_POLLS_PER_LOOK_ != 0) {
            continue;
        }
        now = diomp_clock_ns();
        if (begin == 0) {
            begin = now;
            last_look = now;
        }
        if (now - last_look < DIOMP_NS_PER_FLAG_) {
            continue;
        }
        last_look = now;
        if (diomp_acquire_32(own->broken) != 0) {
            reason = DIOMP_DEVICE_JOB_BROKEN;
        } else if (own->timeout_ns != 0 && now - begin > own->timeout_ns) {
            reason = DIOMP_DEVICE_TIMED_OUT;
        } else {
            continue;
        }
        return diomp_device_record(own, call, reason, diomp_device_status(reason), current);
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
    struct diomp_condition how = {type == OMPX_INT64 || type == OMPX_UINT64 ? 8 : 4,
                                  type == OMPX_INT32 || type == OMPX_INT64, cmp, 0};
    if (type < OMPX_INT32 || type > OMPX_UINT64) {
        return diomp_device_fail(own, &call, DIOMP_DEVICE_UNKNOWN_TYPE);
    }
    if (value == 0) {
        return diomp_device_fail(own, &call, DIOMP_DEVICE_NULL);
    }
    if (how.width == 8) {
        __builtin_memcpy(&how.value, value, 8);
    } else {
        uint32_t narrow;
        __builtin_memcpy(&narrow, value, 4);
        how.value = how.is_signed ? (uint64_t)(int64_t)(int32_t)narrow : narrow;
    }
    call.arguments[3] = how.value;
    return diomp_device_wait(own, &call, variable, how);
}

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
        return diomp_device_by_proxy(own, &call);
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
        return diomp_device_by_proxy(own, &call);
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

#endif /* DIOMP_DEVICE_CALLS_H */
