/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file diomp/device_barrier.h
 * The barrier of target regions on GPUs. Not an interface for programs.
 *
 * By dissemination (Hensgen, Finkel, Manber 1988): in round k a rank signals the rank 2^k after it,
 * and waits for the signal of the rank 2^k before it; after log2(ranks) rounds it has heard of all.
 * A signal is the number of the barrier, in a word for each round that one rank alone writes, so
 * words only grow and need no reset. The words lie in the symmetric memory that the runtime
 * allocates first in each device segment.
 */
#ifndef DIOMP_DEVICE_BARRIER_H
#define DIOMP_DEVICE_BARRIER_H

#include "device_ring.h"
#include "device_transfers.h"
#include "device_waits.h"

/** Fences the requests of the calling thread and those of ring 0, which has the signals of the last
 * barrier: they must have arrived before those of the next one, since puts do not keep their order.
 */
DIOMP_ON_DEVICE_ int diomp_barrier_fence(struct diomp_endpoint *own,
                                         const struct diomp_call *call) {
    struct diomp_ring *const ring = diomp_own_ring(own);
    int status;
    diomp_fence_system();
    status = diomp_ring_fence_by(own, ring, call);
    return ring == 0 || ring == own->rings || status != OMPX_SUCCESS
               ? status
               : diomp_ring_fence_by(own, own->rings, call);
}

/** Tells call->rank that this rank has come to round `round`. */
DIOMP_ON_DEVICE_ int diomp_barrier_signal(struct diomp_endpoint *own, const struct diomp_call *call,
                                          int round, uint64_t number) {
    struct diomp_signal const signal = {&own->barrier_words[round], number, OMPX_SIGNAL_SET};
    struct diomp_request request = diomp_request_of(call, DIOMP_REQUEST_PUT_SIGNAL_INLINE, 0);
    char *at;
    int const reason = diomp_device_locate(own, call->rank, signal.at, sizeof(*signal.at), &at);
    if (reason != DIOMP_DEVICE_OK) {
        return diomp_device_fail(own, call, reason);
    }
    if (at != 0) {
        diomp_device_signal(at, signal);
        return OMPX_SUCCESS;
    }
    request.field[1] = (uintptr_t)signal.at;
    request.field[2] = number;
    diomp_fence_system();
    return diomp_ring_post_by(own, own->num_rings == 0 ? 0 : own->rings, call, &request, 0);
}

/**
 * Blocks until this device of all ranks has come here. One thread of a rank's device at a time. A
 * barrier that fails has not been passed: the next call continues it.
 */
DIOMP_DEVICE_CALL_ __attribute__((noinline)) int diomp_device_barrier(struct diomp_endpoint *own,
                                                                      const void *group) {
    struct diomp_call call = {DIOMP_CALL_BARRIER, -1, {(uintptr_t)group, 0, 0, 0}};
    uint64_t const number = diomp_relaxed_64(&own->num_barriers) + 1;
    uint32_t const ranks = (uint32_t)own->num_ranks;
    struct diomp_condition const has_come = {8, 0, OMPX_CMP_GE, number};
    uint32_t distance = 1;
    int status;
    int round;
    call.arguments[1] = number;
    if (group != 0 || own->barrier_words == 0) {
        return diomp_device_fail(own, &call,
                                 group != 0 ? DIOMP_DEVICE_GROUP : DIOMP_DEVICE_UNREACHABLE);
    }
    status = diomp_barrier_fence(own, &call);
    for (round = 0; distance < ranks && status == OMPX_SUCCESS; ++round, distance *= 2) {
        call.rank = (int)(((uint32_t)own->rank + distance) % ranks);
        status = diomp_barrier_signal(own, &call, round, number);
        if (status == OMPX_SUCCESS) {
            call.rank = (int)(((uint32_t)own->rank + ranks - distance) % ranks);
            status = diomp_device_wait(own, &call, &own->barrier_words[round], has_come);
        }
    }
    if (status == OMPX_SUCCESS) {
        diomp_set_relaxed_64(&own->num_barriers, number);
        diomp_fence_system(); /* what the others did before is before all that follows */
    }
    return status;
}

#endif /* DIOMP_DEVICE_BARRIER_H */
