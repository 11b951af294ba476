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

#define DIOMP_ENDPOINT_VERSION 6

/** Words of a barrier, one for each round: enough for 2^32 ranks. */
#define DIOMP_BARRIER_WORDS 32
/** Groups whose barriers a rank's regions call, with the world. Each has its own words. */
#define DIOMP_BARRIER_GROUPS 256
/** Bits of the number of a group's barrier. The words of a group that has been freed are given to
 * another one, whose numbers begin after all of those: words only grow. */
#define DIOMP_BARRIER_BITS 40
/** diomp_group::handle of a group that the host has freed: the entry is free. */
#define DIOMP_GROUP_FREED UINT64_MAX

/** Another rank's device segment, as this device sees it: loads and stores reach what has its
 * counterpart in [0, front_bytes) or [back_begin, segment_bytes) of the own segment. */
struct diomp_peer {
    uint64_t base; /**< of the segment; 0: not mapped for this device */
    uint64_t front_bytes;
    uint64_t back_begin;
    uint64_t back_shift; /**< from an own offset after back_begin to that of its counterpart */
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
    DIOMP_DEVICE_UNREACHABLE,   /**< not mapped for this device, and no ring */
    DIOMP_DEVICE_HOST_MEMORY,   /**< local side: host memory that this device cannot load */
    DIOMP_DEVICE_MISALIGNED,
    DIOMP_DEVICE_UNKNOWN_TYPE,
    DIOMP_DEVICE_UNKNOWN_OP,
    DIOMP_DEVICE_UNKNOWN_CMP,
    DIOMP_DEVICE_TIMED_OUT,
    DIOMP_DEVICE_JOB_BROKEN,
    DIOMP_DEVICE_NO_REPLY,    /**< the proxy has not replied within the time limit */
    DIOMP_DEVICE_GAVE_UP,     /**< the job is broken, so a reply is no longer waited for */
    DIOMP_DEVICE_RING_BROKEN, /**< a request could not be stored earlier */
    DIOMP_DEVICE_GROUP,       /**< no room for another group */
    DIOMP_DEVICE_KIND,        /**< no kind of transfer */
    DIOMP_DEVICE_EVENT        /**< no event of a call in a region of this device */
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
    DIOMP_CALL_TEAM_PUT_SIGNAL,
    DIOMP_CALL_EVENT_WAIT,
    DIOMP_CALL_BARRIER,
    DIOMP_CALL_WAIT_RMA
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

/**
 * What a device asks of the proxy thread of its rank. A request is 64 bytes in a slot of a ring in
 * pinned host memory: six fields of 64 bits, and what the last two words have. Each word carries
 * the lap of the ring in its low byte, so the proxy needs nothing else to see that a request is
 * complete, and slots are never cleared.
 *
 * word 0 .. 5   the low 56 bits of a field, lap
 * word 6        detail (16 bits), call (8), rank (32), lap
 * word 7        the high bytes of the fields (6 x 8), operation (8), lap
 */
enum diomp_request_operation {
    DIOMP_REQUEST_PUT = 1,    /**< remote, source, size */
    DIOMP_REQUEST_PUT_INLINE, /**< remote, up to 40 bytes in fields 1 .. 5; detail: their number */
    DIOMP_REQUEST_GET,        /**< remote, destination, size */
    DIOMP_REQUEST_GET_REPLY,  /**< remote; up to 48 bytes in the reply; detail: their number */
    DIOMP_REQUEST_PUT_SIGNAL, /**< remote, signal, value, source, size; detail: see below */
    DIOMP_REQUEST_PUT_SIGNAL_INLINE, /**< up to 24 bytes in fields 3 .. 5 instead of the source */
    DIOMP_REQUEST_FETCH,             /**< target, operand; detail: type, operator << 8 */
    DIOMP_REQUEST_COMPARE_SWAP,      /**< target, expected, desired; detail: type */
    DIOMP_REQUEST_FENCE,
    DIOMP_REQUEST_GROUP,       /**< handle, round; the reply: see diomp_group_reply */
    DIOMP_REQUEST_REPLY = 0x80 /**< or-ed: the device waits for the reply */
};
/* The detail of a put with signal: the number of inline bytes, and these. */
#define DIOMP_SIGNAL_ADDS_ 0x100  /**< OMPX_SIGNAL_ADD */
#define DIOMP_SIGNAL_LATER_ 0x200 /**< the signal also follows this ring's earlier puts */

#define DIOMP_INLINE_PUT_BYTES 40
#define DIOMP_INLINE_SIGNAL_BYTES 24
#define DIOMP_INLINE_REPLY_BYTES 48

/** What the reply to DIOMP_REQUEST_GROUP has in its words. */
enum diomp_group_reply {
    DIOMP_GROUP_SIZE = 0, /**< number of members */
    DIOMP_GROUP_SLOT,     /**< of the group's words at this rank, and from DIOMP_BARRIER_BITS on the
                             number of groups that have had it before */
    DIOMP_GROUP_TO,       /**< world rank that this rank signals in the round */
    DIOMP_GROUP_TO_SLOT,  /**< of the group's words there, likewise */
    DIOMP_GROUP_FROM,     /**< world rank for which this rank waits */
    DIOMP_GROUP_REPLY_WORDS
};

/** A request, as the device writes it and the proxy has read it. */
struct diomp_request {
    uint64_t field[6];
    int32_t rank;
    uint32_t operation; /**< enum diomp_request_operation */
    uint32_t call;      /**< enum diomp_device_call, for error messages */
    uint32_t detail;
};

/** The reply to the request of the slot with the same number, in pinned host memory. */
struct diomp_cell {
    uint64_t token; /**< index of the request + 1: the other members are valid */
    int32_t status;
    int32_t unused;
    uint64_t values[6];
};

/** What the proxy and the device tell each other about a ring, in pinned host memory. */
struct diomp_ring_state {
    uint64_t done; /**< number of requests that the proxy has executed, written by it */
    uint64_t unused[7];
    uint64_t broken; /**< written by the device: an index was reserved, and nothing stored there */
    uint64_t unused_too[7];
};

/** A ring as the device sees it, in device memory. */
struct diomp_ring {
    uint64_t reserved;  /**< index of the next request */
    uint64_t done_seen; /**< of state->done, when last looked at */
    uint64_t fenced;    /**< requests below this index are complete at their ranks */
    uint64_t broken;    /**< nothing more can be stored until the runtime has reset the ring */
    uint64_t slot_bits; /**< 1 << slot_bits slots */
    uint64_t (*slots)[8];
    struct diomp_cell *cells; /**< [slot] */
    struct diomp_ring_state *state;
    uint64_t *busy; /**< [slot] In device memory: 1 until the device has read the reply. */
};

/** A round of a group's barrier. */
struct diomp_group_round {
    int32_t to;      /**< world rank that is signalled */
    int32_t from;    /**< world rank that is waited for */
    uint64_t *there; /**< the word of `to`, named as one of the own segment */
    uint64_t first;  /**< what the word may hold of other groups: the barrier's number is added */
};

/** A group whose barrier a region has called, in device memory, which the device fills. */
struct diomp_group {
    uint64_t handle;       /**< 0 or DIOMP_GROUP_FREED: a free entry */
    uint64_t num_barriers; /**< that the device has passed */
    uint64_t size;         /**< number of members; 0: the members below are not valid yet */
    uint64_t *words;       /**< [round] like diomp_endpoint::barrier_words */
    uint64_t first;        /**< see diomp_group_round::first; for all of `words` */
    struct diomp_group_round rounds[DIOMP_BARRIER_WORDS];
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
    /** [DIOMP_BARRIER_GROUPS][DIOMP_BARRIER_WORDS] in symmetric memory of the own segment: the
     * number of the last barrier that another rank has signalled in each round; the world's first.
     * Null: there are none. */
    uint64_t *barrier_words;
    struct diomp_group *groups; /**< [DIOMP_BARRIER_GROUPS], found by their handles */

    uint64_t host_begin; /**< all host segments of the node */
    uint64_t host_bytes;
    uint64_t timeout_ns;   /**< of a wait; 0: none */
    const int32_t *broken; /**< in pinned host memory: not 0 if the job is broken */
    struct diomp_device_error *error;
    struct diomp_ring *rings; /**< [num_rings] */
    uint32_t num_rings;       /**< a power of 2; 0: no proxy serves this device */
    uint32_t unused_too;

    /* What only the device writes. */
    uint64_t error_claim;  /**< error->taken + 1 if a thread has claimed the record */
    uint64_t num_barriers; /**< that the device has passed */
};

#endif /* DIOMP_DEVICE_ENDPOINT_H */
