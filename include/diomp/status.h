/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file diomp/status.h
 * The codes that functions of diomp.h return. Needs no other header.
 */
#ifndef DIOMP_STATUS_H
#define DIOMP_STATUS_H

/* ---- Status ---- */

/** Result codes. The values are the same in all versions. */
typedef enum ompx_status {
    OMPX_SUCCESS = 0,
    OMPX_ERR_ARG = -1,          /**< null pointer, unknown type or operator, size that overflows */
    OMPX_ERR_RANK = -2,         /**< rank or root outside its world or group */
    OMPX_ERR_ADDRESS = -3,      /**< address outside the global address space */
    OMPX_ERR_RANGE = -4,        /**< range exceeds its segment or allocation */
    OMPX_ERR_NOMEM = -5,        /**< segment (or system memory) exhausted */
    OMPX_ERR_MISMATCH = -6,     /**< members of a collective made different calls */
    OMPX_ERR_LOCK = -7,         /**< unlock of a lock not held, or lock of a lock held already */
    OMPX_ERR_STATE = -8,        /**< before start-up, after ompx_finalize(), or out of order */
    OMPX_ERR_TIMEOUT = -9,      /**< no progress for DIOMP_TIMEOUT */
    OMPX_ERR_PEER = -10,        /**< a participating rank has died */
    OMPX_ERR_SYSTEM = -11,      /**< a system call failed; see the text */
    OMPX_ERR_UNSUPPORTED = -12, /**< not supported here; see the text */
    OMPX_ERR_BUSY = -13         /**< try_lock: the lock is held. Never fatal, never printed. */
} ompx_status;

#endif /* DIOMP_STATUS_H */
