/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file diomp/device_gpu.h
 * diomp.h's calls in code for GPUs: inline definitions of the functions that diomp.h declares, on
 * the endpoint whose address libomptarget stores in the image. Included by diomp/device.h when
 * clang compiles for a GPU.
 */
#ifndef DIOMP_DEVICE_GPU_H
#define DIOMP_DEVICE_GPU_H

#include "device_calls.h"

/* Set by DiOMP's libomptarget before the first region on the device; null without it. The host has
 * no such variable. */
#pragma omp begin declare target device_type(nohost)
__attribute__((weak, visibility("default"))) struct diomp_endpoint *diomp_device_endpoint_pointer;
#pragma omp end declare target

/** Only in images that make calls: libomptarget looks for the name. */
__attribute__((weak, const, noinline, visibility("default"))) inline struct diomp_endpoint *
diomp_device_endpoint(void) {
    return diomp_device_endpoint_pointer;
}

#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wstatic-in-inline" /* the functions are always inlined */
#define DIOMP_GPU_ extern __inline__ __attribute__((gnu_inline, always_inline))

/* The record, or OMPX_ERR_STATE from the calling function. */
#define DIOMP_OWN_ENDPOINT_(own)                                                                   \
    struct diomp_endpoint *const own = diomp_device_endpoint();                                    \
    if (own == 0 || own->version != DIOMP_ENDPOINT_VERSION) {                                      \
        return OMPX_ERR_STATE;                                                                     \
    }

DIOMP_GPU_ int ompx_rank_num(void) OMPX_NOEXCEPT_ {
    DIOMP_OWN_ENDPOINT_(own)
    return own->rank;
}
DIOMP_GPU_ int ompx_num_ranks(void) OMPX_NOEXCEPT_ {
    DIOMP_OWN_ENDPOINT_(own)
    return own->num_ranks;
}
DIOMP_GPU_ int ompx_get_rank_num(void) OMPX_NOEXCEPT_ { return ompx_rank_num(); }
DIOMP_GPU_ int ompx_get_num_ranks(void) OMPX_NOEXCEPT_ { return ompx_num_ranks(); }

DIOMP_GPU_ void *ompx_remote_ptr(const void *p, int rank) OMPX_NOEXCEPT_ {
    struct diomp_endpoint *const own = diomp_device_endpoint();
    char *at = 0;
    if (own != 0 && own->version == DIOMP_ENDPOINT_VERSION) {
        diomp_device_locate(own, rank, p, 1, &at);
    }
    return at;
}

DIOMP_GPU_ int ompx_put(int rank, void *dst, const void *src, size_t nbytes) OMPX_NOEXCEPT_ {
    struct diomp_part const alone = {0, 1};
    DIOMP_OWN_ENDPOINT_(own)
    return diomp_device_put(own, DIOMP_CALL_PUT, rank, dst, src, nbytes, alone, 0);
}
DIOMP_GPU_ int ompx_get(void *dst, int rank, const void *src, size_t nbytes) OMPX_NOEXCEPT_ {
    struct diomp_part const alone = {0, 1};
    DIOMP_OWN_ENDPOINT_(own)
    return diomp_device_get(own, DIOMP_CALL_GET, dst, rank, src, nbytes, alone, 0);
}

/* An event is the ticket of a request; null if the transfer is complete on return. */
DIOMP_GPU_ int ompx_put_nb(int rank, void *dst, const void *src, size_t nbytes,
                           ompx_event_t *event) OMPX_NOEXCEPT_ {
    struct diomp_part const alone = {0, 1};
    uint64_t ticket = 0;
    int status;
    DIOMP_OWN_ENDPOINT_(own)
    status = diomp_device_put(own, DIOMP_CALL_PUT, rank, dst, src, nbytes, alone, &ticket);
    if (event != 0) {
        *event = (ompx_event_t)(uintptr_t)ticket;
    }
    return status;
}
DIOMP_GPU_ int ompx_get_nb(void *dst, int rank, const void *src, size_t nbytes,
                           ompx_event_t *event) OMPX_NOEXCEPT_ {
    struct diomp_part const alone = {0, 1};
    uint64_t ticket = 0;
    int status;
    DIOMP_OWN_ENDPOINT_(own)
    status = diomp_device_get(own, DIOMP_CALL_GET, dst, rank, src, nbytes, alone, &ticket);
    if (event != 0) {
        *event = (ompx_event_t)(uintptr_t)ticket;
    }
    return status;
}
DIOMP_ON_DEVICE_ int diomp_check_event(const struct diomp_endpoint *own,
                                       const ompx_event_t *event) {
    if (event == 0) {
        return DIOMP_DEVICE_NULL;
    }
    return *event == 0 || diomp_ring_knows(own, (uintptr_t)*event) ? DIOMP_DEVICE_OK
                                                                   : DIOMP_DEVICE_EVENT;
}
DIOMP_GPU_ int ompx_event_test(ompx_event_t *event, int *done) OMPX_NOEXCEPT_ {
    struct diomp_call const call = {DIOMP_CALL_EVENT_WAIT, -1, {0, 0, 0, 0}};
    int reason;
    DIOMP_OWN_ENDPOINT_(own)
    reason = done == 0 ? DIOMP_DEVICE_NULL : diomp_check_event(own, event);
    if (reason != DIOMP_DEVICE_OK) {
        return diomp_device_fail(own, &call, reason);
    }
    *done = *event == 0 || diomp_ring_is_done(own, (uintptr_t)*event);
    if (*done) {
        *event = 0;
    }
    return OMPX_SUCCESS;
}
DIOMP_GPU_ int ompx_event_wait(ompx_event_t *event) OMPX_NOEXCEPT_ {
    struct diomp_call const call = {DIOMP_CALL_EVENT_WAIT, -1, {0, 0, 0, 0}};
    int status = OMPX_SUCCESS;
    int reason;
    DIOMP_OWN_ENDPOINT_(own)
    reason = diomp_check_event(own, event);
    if (reason != DIOMP_DEVICE_OK) {
        return diomp_device_fail(own, &call, reason);
    }
    if (*event != 0) {
        status = diomp_ring_wait(own, &call, (uintptr_t)*event);
        *event = 0;
    }
    return status;
}

DIOMP_GPU_ int ompx_put_signal(int rank, void *dst, const void *src, size_t nbytes,
                               uint64_t *signal, uint64_t value,
                               ompx_signal_op_t op) OMPX_NOEXCEPT_ {
    struct diomp_signal const update = {signal, value, (int)op};
    DIOMP_OWN_ENDPOINT_(own)
    return diomp_device_put_signal(own, rank, dst, src, nbytes, update);
}

DIOMP_GPU_ int ompx_signal_wait(const uint64_t *signal, ompx_cmp_t cmp,
                                uint64_t value) OMPX_NOEXCEPT_ {
    struct diomp_call const call = {
        DIOMP_CALL_SIGNAL_WAIT, -1, {(uintptr_t)signal, (uint64_t)cmp, value, 0}};
    struct diomp_condition const how = {8, 0, (int)cmp, value};
    DIOMP_OWN_ENDPOINT_(own)
    return diomp_device_wait(own, &call, signal, how);
}
DIOMP_GPU_ int ompx_signal_test(const uint64_t *signal, ompx_cmp_t cmp,
                                uint64_t value) OMPX_NOEXCEPT_ {
    struct diomp_call const call = {
        DIOMP_CALL_SIGNAL_TEST, -1, {(uintptr_t)signal, (uint64_t)cmp, value, 0}};
    struct diomp_condition const how = {8, 0, (int)cmp, value};
    DIOMP_OWN_ENDPOINT_(own)
    return diomp_device_test(own, &call, signal, how);
}
DIOMP_GPU_ int ompx_wait_until(const void *variable, ompx_type_t type, ompx_cmp_t cmp,
                               const void *value) OMPX_NOEXCEPT_ {
    DIOMP_OWN_ENDPOINT_(own)
    return diomp_device_wait_until(own, variable, type, (int)cmp, value);
}

DIOMP_GPU_ int ompx_fence_group(ompx_group_t group) OMPX_NOEXCEPT_ {
    struct diomp_call const call = {DIOMP_CALL_FENCE, -1, {0, 0, 0, 0}};
    DIOMP_OWN_ENDPOINT_(own)
    (void)group; /* what a thread has written is complete for all ranks at once */
    diomp_fence_system();
    return diomp_ring_fence(own, &call);
}
DIOMP_GPU_ int ompx_fence(void) OMPX_NOEXCEPT_ { return ompx_fence_group(0); }
DIOMP_GPU_ int ompx_waitALLRMA(void) OMPX_NOEXCEPT_ { return ompx_fence_group(0); }
DIOMP_GPU_ int ompx_waitRMA(int kind) OMPX_NOEXCEPT_ {
    struct diomp_call const call = {DIOMP_CALL_WAIT_RMA, -1, {(uint64_t)(int64_t)kind, 0, 0, 0}};
    DIOMP_OWN_ENDPOINT_(own)
    return (kind & ~OMPX_RMA_ALL) != 0 || kind == 0
               ? diomp_device_fail(own, &call, DIOMP_DEVICE_KIND)
               : ompx_fence_group(0);
}

DIOMP_GPU_ int ompx_barrier_group(ompx_group_t group) OMPX_NOEXCEPT_ {
    DIOMP_OWN_ENDPOINT_(own)
    return diomp_device_barrier(own, group);
}
DIOMP_GPU_ int ompx_barrier(void) OMPX_NOEXCEPT_ { return ompx_barrier_group(0); }

DIOMP_GPU_ int ompx_atomic_fetch(int rank, void *target, const void *operand, void *result,
                                 ompx_type_t type, ompx_op_t op) OMPX_NOEXCEPT_ {
    DIOMP_OWN_ENDPOINT_(own)
    return diomp_device_atomic_fetch(own, rank, target, operand, result, type, op);
}
DIOMP_GPU_ int ompx_atomic_compare_swap(int rank, void *target, const void *expected,
                                        const void *desired, void *result,
                                        ompx_type_t type) OMPX_NOEXCEPT_ {
    DIOMP_OWN_ENDPOINT_(own)
    return diomp_device_compare_swap(own, rank, target, expected, desired, result, type);
}
#pragma clang diagnostic pop

/* ---- By all threads of a team ---- */

DIOMP_ON_DEVICE_ struct diomp_part diomp_own_part(void) {
    struct diomp_part const part = {(uint64_t)omp_get_thread_num(),
                                    (uint64_t)omp_get_num_threads()};
    return part;
}

/* The status of the thread that asks the proxy for all threads of its team. */
#pragma omp begin declare target device_type(nohost)
#if defined(DIOMP_TEST_AS_GPU)
static int diomp_team_status; /* processors run one team after the other */
#else
static int diomp_team_status __attribute__((loader_uninitialized));
#pragma omp allocate(diomp_team_status) allocator(omp_pteam_mem_alloc)
#endif
#pragma omp end declare target

/* Ends a call by a team: all threads return the status of the first one, or their own. */
DIOMP_ON_DEVICE_ int diomp_team_finish(struct diomp_part part, int status) {
    if (part.index == 0) {
        diomp_team_status = status;
    }
#pragma omp barrier
    return status != OMPX_SUCCESS ? status : diomp_team_status;
}

static inline int diomp_team_put(int rank, void *dst, const void *src, size_t nbytes) {
    struct diomp_part const part = diomp_own_part();
    struct diomp_endpoint *const own = diomp_device_endpoint();
    int status = OMPX_ERR_STATE;
#pragma omp barrier
    if (own != 0 && own->version == DIOMP_ENDPOINT_VERSION) {
        status = diomp_device_put(own, DIOMP_CALL_TEAM_PUT, rank, dst, src, nbytes, part, 0);
    }
    return diomp_team_finish(part, status);
}

static inline int diomp_team_get(void *dst, int rank, const void *src, size_t nbytes) {
    struct diomp_part const part = diomp_own_part();
    struct diomp_endpoint *const own = diomp_device_endpoint();
    int status = OMPX_ERR_STATE;
#pragma omp barrier
    if (own != 0 && own->version == DIOMP_ENDPOINT_VERSION) {
        status = diomp_device_get(own, DIOMP_CALL_TEAM_GET, dst, rank, src, nbytes, part, 0);
    }
    return diomp_team_finish(part, status);
}

static inline int diomp_team_put_signal(int rank, void *dst, const void *src, size_t nbytes,
                                        uint64_t *signal, uint64_t value, ompx_signal_op_t op) {
    struct diomp_part const part = diomp_own_part();
    struct diomp_signal const update = {signal, value, (int)op};
    struct diomp_endpoint *const own = diomp_device_endpoint();
    char *at = 0;
    int status = OMPX_ERR_STATE;
#pragma omp barrier
    if (own != 0 && own->version == DIOMP_ENDPOINT_VERSION) {
        status = diomp_device_team_put_signal(own, rank, dst, src, nbytes, update, part, &at);
    }
    status = diomp_team_finish(part, status);
    if (at != 0 && part.index == 0) {
        diomp_device_signal(at, update);
    }
    return status;
}

#endif /* DIOMP_DEVICE_GPU_H */
