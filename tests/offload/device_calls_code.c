/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Every call that target regions can make, for device-calls-code.sh: compiled only. C and C++. */
#include <diomp.h>

int region(char *there, uint64_t *signals, size_t nbytes, int rank, ompx_group_t group);

int region(char *there, uint64_t *signals, size_t nbytes, int rank, ompx_group_t group) {
    int status = 0;
#pragma omp target is_device_ptr(there, signals) map(tofrom : status)
    {
        int64_t wide = 1, old = 0;
        uint32_t narrow = 2, old_narrow = 0;
        float single = 3, old_single = 0;
        double twice = 4, old_twice = 0;
        int done = 0;
        ompx_event_t event = NULL;
        status |= ompx_rank_num() + ompx_get_rank_num() - ompx_num_ranks() - ompx_get_num_ranks();
        status |= ompx_remote_ptr(there, rank) == NULL;
        status |= ompx_put(rank, there, &wide, sizeof(wide));
        status |= ompx_get(&wide, rank, there, sizeof(wide));
        status |= ompx_put_nb(rank, there, there + nbytes, nbytes, &event);
        status |= ompx_event_wait(&event);
        status |= ompx_get_nb(there, rank, there + nbytes, nbytes, &event);
        status |= ompx_event_test(&event, &done);
        status |= ompx_put_signal(rank, there, there + nbytes, nbytes, signals, 1, OMPX_SIGNAL_ADD);
        status |= ompx_signal_wait(signals, OMPX_CMP_GE, 1);
        status |= ompx_signal_test(signals, OMPX_CMP_GE, 1) < 0;
        status |= ompx_wait_until(there, OMPX_UINT32, OMPX_CMP_EQ, &narrow);
        status |= ompx_fence() | ompx_fence_group(NULL) | ompx_waitALLRMA();
        status |= ompx_waitRMA(OMPX_RMA_PUT);
        status |= ompx_barrier() | ompx_barrier_group(group);
        status |= ompx_atomic_add(rank, there, &wide, OMPX_INT64);
        status |= ompx_atomic_fetch_add(rank, there, &narrow, &old_narrow, OMPX_UINT32);
        status |= ompx_atomic_fetch_add(rank, there, &single, &old_single, OMPX_FLOAT);
        status |= ompx_atomic_fetch_add(rank, there, &twice, &old_twice, OMPX_DOUBLE);
        status |= ompx_atomic_min(rank, there, &narrow, OMPX_INT32);
        status |= ompx_atomic_fetch_max(rank, there, &wide, &old, OMPX_UINT64);
        status |= ompx_atomic_max(rank, there, &twice, OMPX_DOUBLE);
        status |= ompx_atomic_and(rank, there, &narrow, OMPX_UINT32);
        status |= ompx_atomic_fetch_or(rank, there, &wide, &old, OMPX_INT64);
        status |= ompx_atomic_xor(rank, there, &narrow, OMPX_INT32);
        status |= ompx_atomic_swap(rank, there, &wide, &old, OMPX_UINT64);
        status |= ompx_atomic_fetch(rank, there, NULL, &old, OMPX_INT64, OMPX_NO_OP);
        status |= ompx_atomic_compare_swap(rank, there, &wide, &old, &old, OMPX_INT64);
        status |=
            ompx_atomic_compare_swap(rank, there, &narrow, &old_narrow, &old_narrow, OMPX_UINT32);
    }
#pragma omp target teams is_device_ptr(there, signals) map(tofrom : status)
#pragma omp parallel
    {
        int outcome = ompx_team_put(rank, there, there + nbytes, nbytes);
        outcome |= ompx_team_get(there, rank, there + nbytes, nbytes);
        outcome |=
            ompx_team_put_signal(rank, there, there + nbytes, nbytes, signals, 1, OMPX_SIGNAL_SET);
#pragma omp atomic
        status |= outcome;
    }
    return status;
}
