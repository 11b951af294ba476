/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file diomp/device_transfers.h
 * Put, get, and put with signal in target regions on GPUs. Not an interface for programs.
 */
#ifndef DIOMP_DEVICE_TRANSFERS_H
#define DIOMP_DEVICE_TRANSFERS_H

#include "device_call.h"
#include "device_ring.h"

/* ---- Transfers ---- */

/** The part of a thread in a put; what the device cannot store is put by the thread with index 0.
 * `ticket` as in diomp_ring_put(), or null. */
DIOMP_DEVICE_CALL_ int diomp_device_put(struct diomp_endpoint *own, int which, int rank, void *dst,
                                        const void *src, uint64_t nbytes, struct diomp_part part,
                                        uint64_t *ticket) {
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
        return nbytes == 0 || part.index > 0 ? OMPX_SUCCESS
                                             : diomp_ring_put(own, &call, dst, src, nbytes, ticket);
    }
    if (part.count > 1 || !diomp_copy_word(at, src, nbytes)) {
        diomp_copy(at, src, nbytes, part.index, part.count);
    }
    return OMPX_SUCCESS;
}

DIOMP_DEVICE_CALL_ int diomp_device_get(struct diomp_endpoint *own, int which, void *dst, int rank,
                                        const void *src, uint64_t nbytes, struct diomp_part part,
                                        uint64_t *ticket) {
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
        return nbytes == 0 || part.index > 0 ? OMPX_SUCCESS
                                             : diomp_ring_get(own, &call, dst, src, nbytes, ticket);
    }
    if (part.count > 1 || !diomp_copy_word(dst, at, nbytes)) {
        diomp_copy(dst, at, nbytes, part.index, part.count);
    }
    return OMPX_SUCCESS;
}

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

/** Whether this device can store memory that diomp_device_locate() has found valid. */
DIOMP_ON_DEVICE_ int diomp_device_is_mapped(const struct diomp_endpoint *own, int rank,
                                            const void *pointer, uint64_t nbytes) {
    char *at;
    diomp_device_locate(own, rank, pointer, nbytes, &at);
    return at != 0 || nbytes == 0;
}

/** A put with a signal that this device cannot store. */
DIOMP_ON_DEVICE_ int diomp_device_put_signal_by_ring(struct diomp_endpoint *own,
                                                     const struct diomp_call *call, void *dst,
                                                     const void *src, uint64_t nbytes,
                                                     struct diomp_signal signal,
                                                     struct diomp_part part) {
    char *at;
    int reason = diomp_device_locate(own, call->rank, dst, nbytes, &at);
    if (reason == DIOMP_DEVICE_OK) {
        reason = diomp_device_check_local(own, src, nbytes);
    }
    if (reason != DIOMP_DEVICE_OK) {
        return diomp_device_fail(own, call, reason);
    }
    return part.index > 0 ? OMPX_SUCCESS
                          : diomp_ring_put_signal(own, call, dst, src, nbytes, signal);
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
        return diomp_device_put_signal_by_ring(own, &call, dst, src, nbytes, signal, part);
    }
    status = diomp_device_put(own, which, rank, dst, src, nbytes, part, 0);
    if (status == OMPX_SUCCESS && part.index == 0 &&
        !diomp_device_is_mapped(own, rank, dst, nbytes)) {
        status =
            diomp_ring_fence(own, &call); /* this device stores the signal, the proxy the data */
    }
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

#endif /* DIOMP_DEVICE_TRANSFERS_H */
