/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file diomp/context.h
 * Contexts: sets of transfers that are completed apart from all others. Part of diomp.h, which
 * holds the conventions; include diomp.h.
 */
#ifndef DIOMP_H
#include "../diomp.h" /* which includes this file */
#endif
#ifndef DIOMP_CONTEXT_H
#define DIOMP_CONTEXT_H

/* ---- Contexts ---- */

/**
 * Creates a context, an empty set of transfers without events. One thread at a time may use it.
 * Neither ompx_fence() nor a barrier completes its transfers, so that a thread waits for its own
 * only. Not collective, does not block. Compare shmem_ctx_create (OpenSHMEM 1.5).
 */
OMPX_API_ int ompx_context_create(ompx_context_t *context) OMPX_NOEXCEPT_;
/** Completes the context's transfers, frees it and sets *context to NULL. Blocks. After an error
 * the context stays as it is. */
OMPX_API_ int ompx_context_free(ompx_context_t *context) OMPX_NOEXCEPT_;
/** ompx_put_nb() and ompx_get_nb() without an event, as part of the context: the local buffer must
 * not be changed (put) or used (get) until ompx_context_fence() returns. */
OMPX_API_ int ompx_context_put_nb(ompx_context_t context, int rank, void *dst, const void *src,
                                  size_t nbytes) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_context_get_nb(ompx_context_t context, void *dst, int rank, const void *src,
                                  size_t nbytes) OMPX_NOEXCEPT_;
/** Blocks until the context's transfers are complete, puts at their targets. */
OMPX_API_ int ompx_context_fence(ompx_context_t context) OMPX_NOEXCEPT_;

#endif /* DIOMP_CONTEXT_H */
