/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file diomp/device_call.h
 * What the calls of target regions on GPUs share: errors, addresses, and how long they wait. Not an
 * interface for programs.
 */
#ifndef DIOMP_DEVICE_CALL_H
#define DIOMP_DEVICE_CALL_H

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
    case DIOMP_DEVICE_GROUP:
        return OMPX_ERR_UNSUPPORTED;
    case DIOMP_DEVICE_VERSION:
        return OMPX_ERR_STATE;
    case DIOMP_DEVICE_TIMED_OUT:
    case DIOMP_DEVICE_NO_REPLY:
    case DIOMP_DEVICE_RING_BROKEN:
        return OMPX_ERR_TIMEOUT;
    case DIOMP_DEVICE_JOB_BROKEN:
    case DIOMP_DEVICE_GAVE_UP:
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
        if (peer->base != 0 && offset >= peer->back_begin) {
            *at = (char *)(uintptr_t)(peer->base + offset + peer->back_shift);
        } else if (peer->base != 0 && offset < peer->front_bytes &&
                   nbytes <= peer->front_bytes - offset) {
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

/** The part of the calling thread among those of its team that make a call together. */
struct diomp_part {
    uint64_t index;
    uint64_t count;
};

/* ---- The end of waits ---- */

/* A wait looks at the clock after so many polls, and over PCIe at the flag of the job after so many
 * nanoseconds. */
#define DIOMP_POLLS_PER_LOOK_ 32
#define DIOMP_NS_PER_FLAG_ 20000

/** How long a thread has waited; begins with zeros. */
struct diomp_timeout {
    uint64_t begin;
    uint64_t last_look;
    int polls;
};

/** Call after each poll that was in vain. Returns DIOMP_DEVICE_OK, or why the wait must end:
 * DIOMP_DEVICE_TIMED_OUT or DIOMP_DEVICE_JOB_BROKEN. */
DIOMP_ON_DEVICE_ int diomp_device_gives_up(const struct diomp_endpoint *own,
                                           struct diomp_timeout *timeout) {
    uint64_t now;
    if (++timeout->polls % DIOMP_POLLS_PER_LOOK_ != 0) {
        return DIOMP_DEVICE_OK;
    }
    diomp_yield();
    now = diomp_clock_ns();
    if (timeout->begin == 0) {
        timeout->begin = now;
        timeout->last_look = now;
    }
    if (now - timeout->last_look < DIOMP_NS_PER_FLAG_) {
        return DIOMP_DEVICE_OK;
    }
    timeout->last_look = now;
    if (diomp_acquire_32(own->broken) != 0) {
        return DIOMP_DEVICE_JOB_BROKEN;
    }
    return own->timeout_ns != 0 && now - timeout->begin > own->timeout_ns ? DIOMP_DEVICE_TIMED_OUT
                                                                          : DIOMP_DEVICE_OK;
}

#endif /* DIOMP_DEVICE_CALL_H */
