// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An allreduce of small data inside target regions, in one step: each rank puts its operand, with a
// signal, into a slot of every rank, waits for the signals of all, and adds the slots in the order
// of the ranks, so that all ranks have the same bits.
//
// Calls take two sets of slots in turn, which spares a barrier: a rank that puts in call n + 2 has
// ended call n + 1, for which every rank has sent its operand after it had read the slots of call
// n.
#ifndef REDUCE_ONESHOT_H
#define REDUCE_ONESHOT_H

#include "diomp.h"

#include <omp.h>
#include <stddef.h>
#include <stdint.h>

enum { SLOT_DOUBLES = 512 }; // 4 KiB
// Up to this size a thread puts alone, and the threads put to different ranks at a time.
enum { ALONE_BYTES = 64 };

// In symmetric memory of the device, apart from `failed`; signals begin with 0.
typedef struct oneshot {
    double *slots;     // [2][rank][SLOT_DOUBLES]
    uint64_t *arrived; // [2][rank]: the last call whose operand is in the slot
    int *failed;       // in the device's memory, 0: a call of this rank has failed
    int rank, ranks;
} oneshot;

static inline void oneshot_put(const oneshot *o, uint64_t call, const double *operand, int count) {
    const size_t nbytes = (size_t)count * sizeof(double);
    const size_t own = (size_t)(call % 2) * (size_t)o->ranks + (size_t)o->rank;
    double *const slot = o->slots + own * SLOT_DOUBLES;
    uint64_t *const signal = &o->arrived[own];
    const int alone = nbytes <= ALONE_BYTES;
    const int stride = alone ? omp_get_num_threads() : 1;
    for (int i = alone ? omp_get_thread_num() : 0; i < o->ranks; i += stride) {
        const int to = (o->rank + i) % o->ranks; // not all to the same one
        const int status =
            alone ? ompx_put_signal(to, slot, operand, nbytes, signal, call, OMPX_SIGNAL_SET)
                  : ompx_team_put_signal(to, slot, operand, nbytes, signal, call, OMPX_SIGNAL_SET);
        if (status != OMPX_SUCCESS) {
#pragma omp atomic write
            *o->failed = 1;
        }
    }
}

static inline void oneshot_wait(const oneshot *o, uint64_t call) {
    const uint64_t *const arrived = &o->arrived[(size_t)(call % 2) * (size_t)o->ranks];
    for (int rank = omp_get_thread_num(); rank < o->ranks; rank += omp_get_num_threads()) {
        if (ompx_signal_wait(&arrived[rank], OMPX_CMP_GE, call) != OMPX_SUCCESS) {
#pragma omp atomic write
            *o->failed = 1;
        }
    }
}

// Adds `count` doubles of all ranks. By all threads of the only team of a region, with equal
// arguments; calls are numbered from 1, alike on all ranks. `operand` may be changed, and `result`
// read, when all threads have returned. Returns 0 if a call has failed, on all threads alike.
static inline int oneshot_sum(const oneshot *o, uint64_t call, const double *operand,
                              double *result, int count) {
    oneshot_put(o, call, operand, count);
    oneshot_wait(o, call);
#pragma omp barrier
    const double *const slots = o->slots + (size_t)(call % 2) * (size_t)o->ranks * SLOT_DOUBLES;
    for (int i = omp_get_thread_num(); i < count; i += omp_get_num_threads()) {
        double sum = slots[i];
        for (int rank = 1; rank < o->ranks; ++rank) {
            sum += slots[(size_t)rank * SLOT_DOUBLES + (size_t)i];
        }
        result[i] = sum;
    }
    const int complete = !*o->failed;
#pragma omp barrier
    return complete;
}

#endif
