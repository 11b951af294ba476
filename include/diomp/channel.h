/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file diomp/channel.h
 * Channels: messages of one size from one rank to another, into memory that is reused only when the
 * receiver has said so. Part of diomp.h, which holds the conventions; include diomp.h.
 */
#ifndef DIOMP_CHANNEL_H
#define DIOMP_CHANNEL_H

#include "types.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* ---- Channels ---- */

/**
 * Creates this rank's end of a channel; the partner creates the other one with the same tag, nbytes
 * and depth. A channel carries messages of nbytes from the sending to the receiving rank. Its
 * memory, `depth` buffers of the receiver's segment, is allocated here; a sender that is `depth`
 * messages ahead waits until the receiver releases one, so no message is overwritten unread. With
 * depth 2, sender and receiver work at the same time.
 *
 * Not collective, does not block: the first call that uses the channel waits for the partner. The
 * n-th sending end with a tag belongs to the partner's n-th receiving end with that tag, so give
 * different channels between two ranks (to and from, left and right) different tags. The partner
 * may be this rank. `depth` is from 1 to OMPX_CHANNEL_MAX_DEPTH. OMPX_ERR_NOMEM if the segment is
 * full.
 *
 * The calls below return OMPX_ERR_MISMATCH if both ends were created with different sizes or
 * depths; OMPX_ERR_STATE if the partner has freed its end (a receiver first gets all messages), or
 * if the call does not belong to this kind of end. DiOMP's own; compare persistent messages
 * (MPI 4.0, 3.9) and notified access in GASPI.
 */
OMPX_API_ int ompx_channel_create(int partner, int tag, ompx_channel_end_t end, size_t nbytes,
                                  int depth, ompx_channel_t *channel) OMPX_NOEXCEPT_;
/** Frees an end and sets *channel to OMPX_CHANNEL_NONE; completes its messages first. Not
 * collective. The partner may still receive the messages that were sent before. */
OMPX_API_ int ompx_channel_free(ompx_channel_t *channel) OMPX_NOEXCEPT_;

/** Stores the size of a message in bytes. Does not block. */
OMPX_API_ int ompx_channel_nbytes(ompx_channel_t channel, size_t *nbytes) OMPX_NOEXCEPT_;

/** Sends data[nbytes]; blocks until there is a buffer for it. Returns when `data` may be reused. */
OMPX_API_ int ompx_channel_send(ompx_channel_t channel, const void *data) OMPX_NOEXCEPT_;
/** Sends if there is a buffer, otherwise returns OMPX_ERR_BUSY at once. */
OMPX_API_ int ompx_channel_try_send(ompx_channel_t channel, const void *data) OMPX_NOEXCEPT_;
/**
 * The buffer of the next message, nbytes at a multiple of 64, to be written by this rank and sent
 * by ompx_channel_commit(); blocks until there is one. On the same node it is the receiver's memory
 * itself, so that the message is not copied. NULL on an error. OMPX_ERR_STATE if a buffer has been
 * acquired and not committed.
 */
OMPX_API_ void *ompx_channel_acquire(ompx_channel_t channel) OMPX_NOEXCEPT_;
/** Stores the buffer in *buffer, or returns OMPX_ERR_BUSY at once if there is none. */
OMPX_API_ int ompx_channel_try_acquire(ompx_channel_t channel, void **buffer) OMPX_NOEXCEPT_;
/** Sends the message that was written to the acquired buffer, which must not be used afterwards.
 * OMPX_ERR_STATE without such a buffer. */
OMPX_API_ int ompx_channel_commit(ompx_channel_t channel) OMPX_NOEXCEPT_;

/**
 * The next message, nbytes at a multiple of 64, where it has arrived; blocks until it has. This
 * rank may read and change it until it is released. A further call before that gives the message
 * after it. NULL on an error.
 */
OMPX_API_ void *ompx_channel_receive(ompx_channel_t channel) OMPX_NOEXCEPT_;
/** Stores the address of the next message in *data, or returns OMPX_ERR_BUSY at once if none has
 * arrived. */
OMPX_API_ int ompx_channel_try_receive(ompx_channel_t channel, void **data) OMPX_NOEXCEPT_;
/** Releases the oldest message that was received, so that the sender may reuse its buffer. Does not
 * block. OMPX_ERR_STATE if there is none. */
OMPX_API_ int ompx_channel_release(ompx_channel_t channel) OMPX_NOEXCEPT_;

/** Returns 1 if the next send, acquire or receive will not block (it may then return an error), 0
 * if it would, or a negative status. Makes progress, does not block. */
OMPX_API_ int ompx_channel_test(ompx_channel_t channel) OMPX_NOEXCEPT_;
/**
 * Blocks until one of channels[count], ends of either kind, can be used without blocking, and
 * stores its number in *index; if several can, each gets its turn in successive calls of a thread.
 * An end whose partner has freed its end can be used: for an error. OMPX_CHANNEL_NONE is left out;
 * if there is nothing else, returns at once with OMPX_NO_INDEX.
 */
OMPX_API_ int ompx_channel_wait_any(const ompx_channel_t *channels, size_t count,
                                    size_t *index) OMPX_NOEXCEPT_;
/** The test for it: returns 1, or 0 with OMPX_NO_INDEX, or a negative status. */
OMPX_API_ int ompx_channel_test_any(const ompx_channel_t *channels, size_t count,
                                    size_t *index) OMPX_NOEXCEPT_;

#if defined(__cplusplus)
} /* extern "C" */
#endif

#endif /* DIOMP_CHANNEL_H */
