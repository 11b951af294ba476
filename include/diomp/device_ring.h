/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file diomp/device_ring.h
 * Requests of a GPU to the proxy thread of its rank, for memory that the GPU can neither load nor
 * store: how they are stored in a ring, and how their replies are waited for. Not an interface for
 * programs; layout in diomp/device_endpoint.h.
 *
 * A thread reserves an index by an atomic addition in device memory, waits until the slot is free
 * (the proxy's count of executed requests is cached on the device), and stores eight words. The
 * team's number chooses the ring, so the requests of a thread are executed in their order. A slot's
 * reply has a cell with the same number; the cell is busy until its thread has read it, so the next
 * lap cannot overwrite it.
 */
#ifndef DIOMP_DEVICE_RING_H
#define DIOMP_DEVICE_RING_H

#include "device_call.h"
#include "device_request.h"

/* ---- Storing ---- */

/** The ring of the calling thread; null: no proxy serves the device. */
DIOMP_ON_DEVICE_ struct diomp_ring *diomp_own_ring(const struct diomp_endpoint *own) {
    return own->num_rings == 0 ? 0 : &own->rings[diomp_team_number() & (own->num_rings - 1)];
}

/** A thread gives up a request: the ring is not used any more. Returns the reason. */
DIOMP_DEVICE_CALL_ __attribute__((noinline)) int diomp_ring_break(struct diomp_ring *ring,
                                                                  int reason) {
    diomp_set_relaxed_64(&ring->broken, 1);
    diomp_release_64(&ring->state->broken, 1);
    return reason == DIOMP_DEVICE_JOB_BROKEN ? DIOMP_DEVICE_GAVE_UP : DIOMP_DEVICE_NO_REPLY;
}

/** Waits until the slot of `index` is free; returns a reason. */
DIOMP_ON_DEVICE_ int diomp_ring_wait_for_slot(const struct diomp_endpoint *own,
                                              struct diomp_ring *ring, uint64_t index) {
    struct diomp_timeout timeout = {0, 0, 0};
    uint64_t const num_slots = (uint64_t)1 << ring->slot_bits;
    uint64_t done = diomp_relaxed_64(&ring->done_seen);
    while (index - done >= num_slots) {
        int reason;
        done = diomp_acquire_64(&ring->state->done);
        if (index - done < num_slots) {
            /* Another thread may replace a later count by this one, which costs one more look. */
            diomp_set_relaxed_64(&ring->done_seen, done);
            break;
        }
        reason = diomp_device_gives_up(own, &timeout);
        if (reason != DIOMP_DEVICE_OK) {
            return diomp_ring_break(ring, reason);
        }
    }
    return DIOMP_DEVICE_OK;
}

/** Waits until the reply of the lap before has been read, and claims the cell; returns a reason. */
DIOMP_ON_DEVICE_ int diomp_ring_claim_cell(const struct diomp_endpoint *own,
                                           struct diomp_ring *ring, uint64_t slot) {
    struct diomp_timeout timeout = {0, 0, 0};
    while (diomp_acquire_64(&ring->busy[slot]) != 0) {
        int const reason = diomp_device_gives_up(own, &timeout);
        if (reason != DIOMP_DEVICE_OK) {
            return diomp_ring_break(ring, reason);
        }
    }
    diomp_set_relaxed_64(&ring->busy[slot], 1);
    return DIOMP_DEVICE_OK;
}

/** Stores a request; *index receives its index. Returns a reason. */
DIOMP_DEVICE_CALL_ __attribute__((noinline)) int
diomp_ring_store(const struct diomp_endpoint *own, struct diomp_ring *ring,
                 const struct diomp_request *request, uint64_t *index) {
    uint64_t words[8];
    uint64_t slot;
    int reason;
    int i;
    if (diomp_relaxed_64(&ring->broken) != 0) {
        return diomp_acquire_32(own->broken) != 0 ? DIOMP_DEVICE_GAVE_UP : DIOMP_DEVICE_RING_BROKEN;
    }
    *index = diomp_reserve_64(&ring->reserved, 1);
    slot = *index & (((uint64_t)1 << ring->slot_bits) - 1);
    reason = diomp_ring_wait_for_slot(own, ring, *index);
    if (reason == DIOMP_DEVICE_OK && (request->operation & DIOMP_REQUEST_REPLY) != 0) {
        reason = diomp_ring_claim_cell(own, ring, slot);
    }
    if (reason != DIOMP_DEVICE_OK) {
        return reason;
    }
    diomp_request_pack(request, diomp_lap_of(*index, ring->slot_bits), words);
    for (i = 0; i < 8; i += 2) {
        diomp_publish_128(&ring->slots[slot][i], words[i], words[i + 1]);
    }
    return DIOMP_DEVICE_OK;
}

/** Waits for a reply. *status receives the status in it, values[0 .. num_values - 1] its first
 * words. Returns a reason. */
DIOMP_DEVICE_CALL_ __attribute__((noinline)) int
diomp_ring_finish(const struct diomp_endpoint *own, struct diomp_ring *ring, uint64_t index,
                  int *status, uint64_t *values, int num_values) {
    struct diomp_timeout timeout = {0, 0, 0};
    uint64_t const slot = index & (((uint64_t)1 << ring->slot_bits) - 1);
    volatile struct diomp_cell *const cell = &ring->cells[slot];
    int i;
    while (diomp_acquire_64(&ring->cells[slot].token) != index + 1) {
        int const reason = diomp_device_gives_up(own, &timeout);
        if (reason != DIOMP_DEVICE_OK) {
            return diomp_ring_break(ring, reason);
        }
    }
    *status = cell->status;
    for (i = 0; i < num_values; ++i) {
        values[i] = cell->values[i];
    }
    diomp_release_64(&ring->busy[slot], 0);
    return DIOMP_DEVICE_OK;
}

/** Stores a request in a ring, or null, and waits for its reply. The proxy has reported an error
 * that is in it. */
DIOMP_DEVICE_CALL_ int diomp_ring_call_by(struct diomp_endpoint *own, struct diomp_ring *ring,
                                          const struct diomp_call *call,
                                          struct diomp_request *request, uint64_t *values,
                                          int num_values) {
    uint64_t index;
    int status = OMPX_SUCCESS;
    int reason = DIOMP_DEVICE_UNREACHABLE;
    if (ring != 0) {
        request->operation |= DIOMP_REQUEST_REPLY;
        reason = diomp_ring_store(own, ring, request, &index);
    }
    if (reason == DIOMP_DEVICE_OK) {
        reason = diomp_ring_finish(own, ring, index, &status, values, num_values);
    }
    return reason == DIOMP_DEVICE_OK ? status : diomp_device_fail(own, call, reason);
}

DIOMP_ON_DEVICE_ int diomp_ring_call(struct diomp_endpoint *own, const struct diomp_call *call,
                                     struct diomp_request *request, uint64_t *values,
                                     int num_values) {
    return diomp_ring_call_by(own, diomp_own_ring(own), call, request, values, num_values);
}

/* A ticket: a byte that no address of the host has, the request's index + 1 in 48 bits, and the
 * ring's number. */
#define DIOMP_TICKET_MARK_ ((uint64_t)0xd1 << 56)

DIOMP_ON_DEVICE_ uint64_t diomp_ticket_index(uint64_t ticket) { return (ticket << 8) >> 16; }

/** Whether a request of this device has the ticket. */
DIOMP_DEVICE_CALL_ int diomp_ring_knows(const struct diomp_endpoint *own, uint64_t ticket) {
    uint64_t const number = ticket & 0xff;
    uint64_t const end = diomp_ticket_index(ticket);
    return ticket >> 56 == DIOMP_TICKET_MARK_ >> 56 && number < own->num_rings && end != 0 &&
           end <= diomp_relaxed_64(&own->rings[number].reserved);
}

/** Stores a request without a reply in a ring, or null; *ticket, if not null, receives what waits
 * for it. */
DIOMP_DEVICE_CALL_ int diomp_ring_post_by(struct diomp_endpoint *own, struct diomp_ring *ring,
                                          const struct diomp_call *call,
                                          const struct diomp_request *request, uint64_t *ticket) {
    uint64_t index;
    int reason = DIOMP_DEVICE_UNREACHABLE;
    if (ring != 0) {
        reason = diomp_ring_store(own, ring, request, &index);
    }
    if (reason != DIOMP_DEVICE_OK) {
        return diomp_device_fail(own, call, reason);
    }
    if (ticket != 0) {
        *ticket = DIOMP_TICKET_MARK_ | (index + 1) << 8 | (uint64_t)(ring - own->rings);
    }
    return OMPX_SUCCESS;
}

DIOMP_ON_DEVICE_ int diomp_ring_post(struct diomp_endpoint *own, const struct diomp_call *call,
                                     const struct diomp_request *request, uint64_t *ticket) {
    return diomp_ring_post_by(own, diomp_own_ring(own), call, request, ticket);
}

/** Whether the request of a ticket, which diomp_ring_knows, has been executed; it may have failed.
 */
DIOMP_DEVICE_CALL_ int diomp_ring_is_done(const struct diomp_endpoint *own, uint64_t ticket) {
    return diomp_acquire_64(&own->rings[ticket & 0xff].state->done) >= diomp_ticket_index(ticket);
}

/** Waits for the request of a ticket. */
DIOMP_DEVICE_CALL_ int diomp_ring_wait(struct diomp_endpoint *own, const struct diomp_call *call,
                                       uint64_t ticket) {
    struct diomp_timeout timeout = {0, 0, 0};
    while (!diomp_ring_is_done(own, ticket)) {
        int const reason = diomp_device_gives_up(own, &timeout);
        if (reason != DIOMP_DEVICE_OK) {
            return diomp_device_fail(own, call,
                                     reason == DIOMP_DEVICE_JOB_BROKEN ? DIOMP_DEVICE_GAVE_UP
                                                                       : DIOMP_DEVICE_NO_REPLY);
        }
    }
    return OMPX_SUCCESS;
}

/* ---- Data in requests and replies ---- */

/** `nbytes` <= 8 bytes from an address as the low bytes of a word (all of these processors are
 * little-endian). */
DIOMP_ON_DEVICE_ uint64_t diomp_load_bytes(const char *from, uint64_t nbytes) {
    uint64_t word = 0;
    uint64_t i;
    if (nbytes == 8 && ((uintptr_t)from & 7) == 0) {
        return *(const diomp_u64_ *)from;
    }
    for (i = 0; i < nbytes; ++i) {
        word |= (uint64_t)(diomp_u8_)from[i] << (8 * i);
    }
    return word;
}

DIOMP_ON_DEVICE_ void diomp_store_bytes(char *to, uint64_t word, uint64_t nbytes) {
    uint64_t i;
    if (nbytes == 8 && ((uintptr_t)to & 7) == 0) {
        *(diomp_u64_ *)to = word;
        return;
    }
    for (i = 0; i < nbytes; ++i) {
        to[i] = (char)(word >> (8 * i));
    }
}

/** Fills fields first .. 5 with `nbytes` of data. */
DIOMP_ON_DEVICE_ void diomp_request_data(struct diomp_request *request, int first, const char *from,
                                         uint64_t nbytes) {
    int i;
    for (i = first; i < 6; ++i) {
        uint64_t const offset = (uint64_t)(i - first) * 8;
        uint64_t const left = nbytes > offset ? nbytes - offset : 0;
        request->field[i] = left == 0 ? 0 : diomp_load_bytes(from + offset, left < 8 ? left : 8);
    }
}

/** Whether the proxy can read and write local memory: that of the device's segment. All else, such
 * as variables of a thread, travels in requests and replies. */
DIOMP_ON_DEVICE_ int diomp_proxy_reaches(const struct diomp_endpoint *own, const void *local,
                                         uint64_t nbytes) {
    uint64_t const offset = (uintptr_t)local - own->base;
    return offset < own->segment_bytes && nbytes <= own->segment_bytes - offset;
}

/* ---- Transfers ---- */

DIOMP_ON_DEVICE_ struct diomp_request diomp_request_of(const struct diomp_call *call,
                                                       uint32_t operation, const void *remote) {
    struct diomp_request const made = {
        {(uintptr_t)remote, 0, 0, 0, 0, 0}, call->rank, operation, (uint32_t)call->which, 0};
    return made;
}

/** Puts memory that travels in requests. */
DIOMP_DEVICE_CALL_ int diomp_ring_put_inline(struct diomp_endpoint *own,
                                             const struct diomp_call *call, char *remote,
                                             const char *local, uint64_t nbytes) {
    uint64_t at = 0;
    int status = OMPX_SUCCESS;
    while (at < nbytes && status == OMPX_SUCCESS) {
        uint64_t const left = nbytes - at;
        uint64_t const count = left < DIOMP_INLINE_PUT_BYTES ? left : DIOMP_INLINE_PUT_BYTES;
        struct diomp_request request =
            diomp_request_of(call, DIOMP_REQUEST_PUT_INLINE, remote + at);
        request.detail = (uint32_t)count;
        diomp_request_data(&request, 1, local + at, count);
        status = diomp_ring_post(own, call, &request, 0);
        at += count;
    }
    return status;
}

/** Returns when `local` may be reused; with a ticket earlier: then diomp_ring_wait waits for that,
 * unless *ticket is 0. */
DIOMP_DEVICE_CALL_ int diomp_ring_put(struct diomp_endpoint *own, const struct diomp_call *call,
                                      void *remote, const void *local, uint64_t nbytes,
                                      uint64_t *ticket) {
    struct diomp_request request = diomp_request_of(call, DIOMP_REQUEST_PUT, remote);
    if (nbytes <= DIOMP_INLINE_PUT_BYTES || !diomp_proxy_reaches(own, local, nbytes)) {
        return diomp_ring_put_inline(own, call, (char *)remote, (const char *)local, nbytes);
    }
    request.field[3] = (uintptr_t)local;
    request.field[4] = nbytes;
    diomp_fence_system(); /* the proxy reads the data */
    return ticket != 0 ? diomp_ring_post(own, call, &request, ticket)
                       : diomp_ring_call(own, call, &request, 0, 0);
}

/** Returns when the data has arrived; with a ticket as diomp_ring_put(). */
DIOMP_DEVICE_CALL_ int diomp_ring_get(struct diomp_endpoint *own, const struct diomp_call *call,
                                      void *local, const void *remote, uint64_t nbytes,
                                      uint64_t *ticket) {
    uint64_t values[6];
    uint64_t at = 0;
    int status = OMPX_SUCCESS;
    if (nbytes > DIOMP_INLINE_REPLY_BYTES && diomp_proxy_reaches(own, local, nbytes)) {
        struct diomp_request request = diomp_request_of(call, DIOMP_REQUEST_GET, remote);
        request.field[3] = (uintptr_t)local;
        request.field[4] = nbytes;
        diomp_fence_system(); /* the proxy writes after this thread's earlier accesses */
        return ticket != 0 ? diomp_ring_post(own, call, &request, ticket)
                           : diomp_ring_call(own, call, &request, 0, 0);
    }
    while (at < nbytes && status == OMPX_SUCCESS) {
        uint64_t const left = nbytes - at;
        uint64_t const count = left < DIOMP_INLINE_REPLY_BYTES ? left : DIOMP_INLINE_REPLY_BYTES;
        struct diomp_request request =
            diomp_request_of(call, DIOMP_REQUEST_GET_REPLY, (const char *)remote + at);
        uint64_t i;
        request.detail = (uint32_t)count;
        status = diomp_ring_call(own, call, &request, values, (int)((count + 7) / 8));
        for (i = 0; i < count && status == OMPX_SUCCESS; i += 8) {
            diomp_store_bytes((char *)local + at + i, values[i / 8], count - i < 8 ? count - i : 8);
        }
        at += count;
    }
    return status;
}

/** Arguments of a put with signal. */
struct diomp_signal {
    uint64_t *at;
    uint64_t value;
    int op; /**< ompx_signal_op_t */
};

/** Data and signal by the proxy. The signal follows the data, and all that the calling thread has
 * written and seen. */
DIOMP_DEVICE_CALL_ int diomp_ring_put_signal(struct diomp_endpoint *own,
                                             const struct diomp_call *call, void *remote,
                                             const void *local, uint64_t nbytes,
                                             struct diomp_signal signal) {
    struct diomp_request request = diomp_request_of(call, DIOMP_REQUEST_PUT_SIGNAL_INLINE, remote);
    int const by_address =
        nbytes > DIOMP_INLINE_SIGNAL_BYTES && diomp_proxy_reaches(own, local, nbytes);
    request.field[1] = (uintptr_t)signal.at;
    request.field[2] = signal.value;
    request.detail = signal.op == OMPX_SIGNAL_ADD ? DIOMP_SIGNAL_ADDS_ : 0;
    if (by_address) {
        request.operation = DIOMP_REQUEST_PUT_SIGNAL;
        request.field[3] = (uintptr_t)local;
        request.field[4] = nbytes;
    } else if (nbytes > DIOMP_INLINE_SIGNAL_BYTES) {
        int const status =
            diomp_ring_put_inline(own, call, (char *)remote, (const char *)local, nbytes);
        if (status != OMPX_SUCCESS) {
            return status;
        }
        request.detail |= DIOMP_SIGNAL_LATER_;
    } else {
        diomp_request_data(&request, 3, (const char *)local, nbytes);
        request.detail |= (uint32_t)nbytes;
    }
    diomp_fence_system();
    return by_address ? diomp_ring_call(own, call, &request, 0, 0)
                      : diomp_ring_post(own, call, &request, 0);
}

/** Completes the requests of a ring, or null, at their ranks. */
DIOMP_DEVICE_CALL_ int diomp_ring_fence_by(struct diomp_endpoint *own, struct diomp_ring *ring,
                                           const struct diomp_call *call) {
    struct diomp_request request = diomp_request_of(call, DIOMP_REQUEST_FENCE, 0);
    uint64_t before;
    int status;
    if (ring == 0) {
        return OMPX_SUCCESS;
    }
    before = diomp_relaxed_64(&ring->reserved);
    if (before == diomp_relaxed_64(&ring->fenced)) {
        return OMPX_SUCCESS;
    }
    status = diomp_ring_call_by(own, ring, call, &request, 0, 0);
    if (status == OMPX_SUCCESS) {
        /* With the fence's own index, if no other thread has come between. */
        diomp_set_relaxed_64(&ring->fenced, before + 1);
    }
    return status;
}

/** Completes the requests of the calling thread at their ranks. */
DIOMP_ON_DEVICE_ int diomp_ring_fence(struct diomp_endpoint *own, const struct diomp_call *call) {
    return diomp_ring_fence_by(own, diomp_own_ring(own), call);
}

#endif /* DIOMP_DEVICE_RING_H */
