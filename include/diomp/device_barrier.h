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
 *
 * Groups have words of their own, in a slot that each member chooses for itself when it, or another
 * member, needs it first, and uses again when the group has been freed. A device asks its proxy
 * thread once for each round of a group: the member that it signals and the slot there.
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

/** Stores `number` in the word of call->rank that `word` names: this rank has come to a round. */
DIOMP_ON_DEVICE_ int diomp_barrier_signal(struct diomp_endpoint *own, const struct diomp_call *call,
                                          uint64_t *word, uint64_t number) {
    struct diomp_signal const signal = {word, number, OMPX_SIGNAL_SET};
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

/** Asks the proxy for a round of a group's barrier; values[DIOMP_GROUP_REPLY_WORDS]. */
DIOMP_DEVICE_CALL_ int diomp_group_ask(struct diomp_endpoint *own, const struct diomp_call *call,
                                       uint64_t round, uint64_t *values) {
    struct diomp_request request = diomp_request_of(call, DIOMP_REQUEST_GROUP, 0);
    request.field[0] = call->arguments[0];
    request.field[1] = round;
    return diomp_ring_call(own, call, &request, values, DIOMP_GROUP_REPLY_WORDS);
}

/** The entry of a handle, or the first free one where it would be; null: all are in use. */
DIOMP_ON_DEVICE_ struct diomp_group *diomp_group_entry(const struct diomp_endpoint *own,
                                                       uint64_t handle) {
    uint64_t const first = (handle * 0x9e3779b97f4a7c15u) >> 32;
    struct diomp_group *freed = 0;
    uint64_t i;
    for (i = 0; i < DIOMP_BARRIER_GROUPS; ++i) {
        struct diomp_group *const entry = &own->groups[(first + i) % DIOMP_BARRIER_GROUPS];
        uint64_t const seen = diomp_relaxed_64(&entry->handle);
        if (seen == handle || (seen == 0 && freed == 0)) {
            return entry;
        }
        if (seen == 0) {
            break;
        }
        if (seen == DIOMP_GROUP_FREED && freed == 0) {
            freed = entry;
        }
    }
    return freed;
}

/** Finds the group that call->arguments[0] is the handle of; the first time by requests. Returns a
 * status. */
DIOMP_DEVICE_CALL_ __attribute__((noinline)) int diomp_group_find(struct diomp_endpoint *own,
                                                                  const struct diomp_call *call,
                                                                  struct diomp_group **found) {
    uint64_t const handle = call->arguments[0];
    uint64_t const mask = ((uint64_t)1 << DIOMP_BARRIER_BITS) - 1;
    uint64_t values[DIOMP_GROUP_REPLY_WORDS];
    struct diomp_group *entry = diomp_group_entry(own, handle);
    uint64_t free_mark;
    uint64_t seen;
    uint64_t distance;
    uint64_t round = 0;
    int status;
    *found = entry;
    if (entry != 0 && diomp_relaxed_64(&entry->handle) == handle &&
        diomp_acquire_64(&entry->size) != 0) {
        return OMPX_SUCCESS;
    }
    status = diomp_group_ask(own, call, 0, values); /* first, so that no entry has a bad handle */
    if (status != OMPX_SUCCESS) {
        return status;
    }
    do { /* a thread with another group may take the entry */
        entry = diomp_group_entry(own, handle);
        if (entry == 0) {
            return diomp_device_fail(own, call, DIOMP_DEVICE_GROUP);
        }
        free_mark = diomp_relaxed_64(&entry->handle) == DIOMP_GROUP_FREED ? DIOMP_GROUP_FREED : 0;
        seen = diomp_claim_64(&entry->handle, free_mark, handle);
    } while (seen != free_mark && seen != handle);
    *found = entry;
    entry->words = own->barrier_words + (values[DIOMP_GROUP_SLOT] & mask) * DIOMP_BARRIER_WORDS;
    entry->first = values[DIOMP_GROUP_SLOT] & ~mask;
    for (distance = 1; distance < values[DIOMP_GROUP_SIZE]; distance *= 2, ++round) {
        if (round > 0) {
            status = diomp_group_ask(own, call, round, values);
            if (status != OMPX_SUCCESS) {
                return status;
            }
        }
        entry->rounds[round].to = (int32_t)values[DIOMP_GROUP_TO];
        entry->rounds[round].from = (int32_t)values[DIOMP_GROUP_FROM];
        entry->rounds[round].there =
            own->barrier_words + (values[DIOMP_GROUP_TO_SLOT] & mask) * DIOMP_BARRIER_WORDS + round;
        entry->rounds[round].first = values[DIOMP_GROUP_TO_SLOT] & ~mask;
    }
    diomp_release_64(&entry->size, values[DIOMP_GROUP_SIZE]);
    return OMPX_SUCCESS;
}

/**
 * Blocks until this device of all members has come here. One thread of a rank's device at a time
 * for each group. A barrier that fails has not been passed: the group's next call continues it.
 */
DIOMP_DEVICE_CALL_ __attribute__((noinline)) int diomp_device_barrier(struct diomp_endpoint *own,
                                                                      const void *handle) {
    struct diomp_call call = {DIOMP_CALL_BARRIER, -1, {(uintptr_t)handle, 0, 0, 0}};
    struct diomp_group *group = 0; /* null: the world */
    uint64_t *count = &own->num_barriers;
    uint64_t *words = own->barrier_words;
    uint64_t members = (uint64_t)own->num_ranks;
    struct diomp_condition has_come = {8, 0, OMPX_CMP_GE, 0};
    uint64_t number;
    uint64_t distance = 1;
    int status = OMPX_SUCCESS;
    int round;
    if (words == 0) {
        return diomp_device_fail(own, &call, DIOMP_DEVICE_UNREACHABLE);
    }
    if (handle != 0) {
        status = diomp_group_find(own, &call, &group);
        if (status != OMPX_SUCCESS) {
            return status;
        }
        count = &group->num_barriers;
        words = group->words;
        members = group->size;
    }
    number = diomp_relaxed_64(count) + 1;
    has_come.value = number + (group != 0 ? group->first : 0);
    call.arguments[1] = number;
    status = diomp_barrier_fence(own, &call);
    for (round = 0; distance < members && status == OMPX_SUCCESS; ++round, distance *= 2) {
        call.rank = group != 0 ? group->rounds[round].to
                               : (int)(((uint64_t)own->rank + distance) % members);
        status = diomp_barrier_signal(own, &call,
                                      group != 0 ? group->rounds[round].there : &words[round],
                                      number + (group != 0 ? group->rounds[round].first : 0));
        if (status == OMPX_SUCCESS) {
            call.rank = group != 0 ? group->rounds[round].from
                                   : (int)(((uint64_t)own->rank + members - distance) % members);
            status = diomp_device_wait(own, &call, &words[round], has_come);
        }
    }
    if (status == OMPX_SUCCESS) {
        diomp_set_relaxed_64(count, number);
        diomp_fence_system(); /* what the others did before is before all that follows */
    }
    return status;
}

#endif /* DIOMP_DEVICE_BARRIER_H */
