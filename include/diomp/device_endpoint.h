/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file diomp/device_endpoint.h
 * What a GPU knows about the job: the record in device memory that the calls in target regions
 * read, and the record of their first error in pinned host memory. The runtime fills both
 * (src/offload/device_endpoints.h). Not an interface for programs: the layout may change with every
 * version, and code for a GPU is compiled with the version of the runtime that it runs with, which
 * the first member tells.
 */
#ifndef DIOMP_DEVICE_ENDPOINT_H
#define DIOMP_DEVICE_ENDPOINT_H

#include <stdint.h>

#define DIOMP_ENDPOINT_VERSION 1

struct diomp_ring; /* of requests to the proxy thread of this rank */

/** Another rank's device segment, as this device sees it: loads and stores reach [0, front_bytes)
 * and [back_begin, segment_bytes) of it. */
struct diomp_peer {
    uint64_t base; /**< of the segment; 0: not mapped for this device */
    uint64_t front_bytes;
    uint64_t back_begin;
    uint64_t unused;
};

/** Why a call in a target region failed. */
enum diomp_device_reason {
    DIOMP_DEVICE_OK = 0,
    DIOMP_DEVICE_VERSION,       /**< compiled with another version of the header */
    DIOMP_DEVICE_RANK,          /**< no such rank */
    DIOMP_DEVICE_NULL,          /**< null pointer */
    DIOMP_DEVICE_SIZE,          /**< negative, or overflows */
    DIOMP_DEVICE_NOT_GLOBAL,    /**< neither in the device segment nor in the host segment */
    DIOMP_DEVICE_NOT_SYMMETRIC, /**< local or asymmetric memory of the device */
    DIOMP_DEVICE_PAST_END,      /**< range exceeds the segment */
    DIOMP_DEVICE_UNREACHABLE,   /**< not mapped for this device, and no proxy */
    DIOMP_DEVICE_HOST_MEMORY,   /**< local side: host memory that this device cannot load */
    DIOMP_DEVICE_MISALIGNED,
    DIOMP_DEVICE_UNKNOWN_TYPE,
    DIOMP_DEVICE_UNKNOWN_OP,
    DIOMP_DEVICE_UNKNOWN_CMP,
    DIOMP_DEVICE_TIMED_OUT,
    DIOMP_DEVICE_JOB_BROKEN,
    DIOMP_DEVICE_BY_PROXY /**< the proxy returned `status` */
};

/** The calls, for error messages. */
enum diomp_device_call {
    DIOMP_CALL_PUT = 0,
    DIOMP_CALL_GET,
    DIOMP_CALL_PUT_SIGNAL,
    DIOMP_CALL_SIGNAL_WAIT,
    DIOMP_CALL_SIGNAL_TEST,
    DIOMP_CALL_WAIT_UNTIL,
    DIOMP_CALL_FENCE,
    DIOMP_CALL_ATOMIC_FETCH,
    DIOMP_CALL_ATOMIC_COMPARE_SWAP,
    DIOMP_CALL_TEAM_PUT,
    DIOMP_CALL_TEAM_GET,
    DIOMP_CALL_TEAM_PUT_SIGNAL
};

/** The first error since the host has last looked, in pinned host memory. A device that wins
 * diomp_endpoint::error_claim writes it, `written` last. */
struct diomp_device_error {
    uint64_t taken;   /**< number of errors that the host has taken */
    uint64_t written; /**< taken + 1: the members below are valid */
    int32_t status;
    int32_t reason;
    int32_t call;
    int32_t rank; /**< that the call names; -1: it names none */
    uint64_t arguments[4];
    uint64_t seen; /**< of a wait: the value that the variable had */
};

/** In device memory. */
struct diomp_endpoint {
    uint32_t version;
    int32_t rank;
    int32_t num_ranks;
    int32_t device; /**< OpenMP's number in this process */
    uint64_t base;  /**< of the own segment on this device */
    uint64_t segment_bytes;
    const struct diomp_peer *peers; /**< [num_ranks], with this rank */
    uint64_t symmetric_end;         /**< symmetric memory is in [0, symmetric_end) */
    uint64_t mapped_begin;          /**< and what OpenMP maps in [mapped_begin, segment_bytes) */
    uint64_t unused;

    uint64_t host_begin; /**< all host segments of the node */
    uint64_t host_bytes;
    uint64_t timeout_ns;   /**< of a wait; 0: none */
    const int32_t *broken; /**< in pinned host memory: not 0 if the job is broken */
    struct diomp_device_error *error;
    uint64_t error_claim;     /**< error->taken + 1 if a thread has claimed the record */
    struct diomp_ring *rings; /**< [num_rings] */
    uint32_t num_rings;
    uint32_t unused_too;
};

#endif /* DIOMP_DEVICE_ENDPOINT_H */
