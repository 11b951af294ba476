/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Litmus tests of the order of memory in target regions, on host devices, and on GPUs in
 * scripts/gpu-check.sh: the roles are teams of regions that run at the same time.
 *
 *   device_litmus [SECONDS] */
#include "offload/on_gpu.h"
#include "support/check.h"

#include <omp.h>
#include <stdint.h>
#include <stdlib.h>

typedef int litmus_by; /* the calls need nothing */

static inline int litmus_put(litmus_by by, int rank, void *dst, const void *src, uint64_t nbytes) {
    (void)by;
    return ompx_put(rank, dst, src, nbytes);
}
static inline int litmus_get(litmus_by by, void *dst, int rank, const void *src, uint64_t nbytes) {
    (void)by;
    return ompx_get(dst, rank, src, nbytes);
}
static inline int litmus_fence(litmus_by by) {
    (void)by;
    return ompx_fence();
}
static inline int litmus_put_signal(litmus_by by, int rank, void *dst, const void *src,
                                    uint64_t nbytes, uint64_t *signal, uint64_t value) {
    (void)by;
    return ompx_put_signal(rank, dst, src, nbytes, signal, value, OMPX_SIGNAL_SET);
}
static inline int litmus_signal_wait(litmus_by by, const uint64_t *signal, uint64_t value) {
    (void)by;
    return ompx_signal_wait(signal, OMPX_CMP_GE, value);
}
static inline int litmus_flag_wait(litmus_by by, const uint64_t *flag, uint64_t value) {
    (void)by;
    return ompx_wait_until(flag, OMPX_UINT64, OMPX_CMP_GE, &value);
}
static inline int litmus_is_mapped(litmus_by by, const void *address, int rank) {
    (void)by;
    return ompx_remote_ptr(address, rank) != NULL;
}

#include "offload/litmus_ranks.h"

static uint64_t *memory; /* symmetric memory of the default device */
static int on_gpu;

/* Only if all roles run at the same time. */
#define RUN_ROLE(num, role_)                                                                       \
    if ((num) == num_here) {                                                                       \
        int const role = (role_);                                                                  \
        status[role] = litmus_role(0, &batch, role, at, &seen[role]);                              \
        _Pragma("omp atomic")++ num_started;                                                       \
    }

/* Each role is a team of a GPU, or a thread of a host device. */
static void roles_of_this_rank(const struct litmus_batch *of, struct litmus_seen *seen,
                               int *status) {
    struct litmus_batch const batch = *of;
    uint64_t *const at = memory;
    int here[LITMUS_ROLES] = {0, 0, 0, 0};
    int num_here = 0;
    int num_started = 0;
    for (int role = 0; role < of->num_roles; ++role) {
        if (of->rank_of[role] == ompx_rank_num()) {
            here[num_here++] = role;
        }
    }
    if (num_here == 0) {
        return;
    }
    if (on_gpu) {
#pragma omp target teams num_teams(num_here) thread_limit(1) is_device_ptr(at)                     \
    map(to : batch, here)                                                                          \
    map(tofrom : seen[0 : LITMUS_ROLES], status[0 : LITMUS_ROLES], num_started)
        RUN_ROLE(omp_get_num_teams(), here[omp_get_team_num()])
    } else {
#pragma omp target parallel num_threads(num_here) is_device_ptr(at) map(to : batch, here)          \
    map(tofrom : seen[0 : LITMUS_ROLES], status[0 : LITMUS_ROLES], num_started)
        RUN_ROLE(omp_get_num_threads(), here[omp_get_thread_num()])
    }
    CHECK(num_started == num_here);
}

int main(int argc, char **argv) {
    char text[600] = "";
    int const device = omp_get_default_device();
    memory = ompx_target_alloc(LITMUS_WORDS * sizeof(*memory), device, ompx_symmetric_mem_alloc);
    CHECK(memory != NULL);
    on_gpu = regions_run_on_gpu();
    uint64_t *const at = memory;
#pragma omp target is_device_ptr(at)
    for (int i = 0; i < LITMUS_WORDS; ++i) {
        at[i] = 0;
    }
    CHECK(ompx_fence() == 0 && ompx_barrier() == 0);
    if (litmus_run(roles_of_this_rank, argc > 1 ? atof(argv[1]) : 1.5, text, sizeof(text)) != 0) {
        fprintf(stderr, "litmus tests: %s\n", text);
        ompx_abort(1);
    }
    CHECK(ompx_target_free(memory, device) == 0);
    if (ompx_rank_num() == 0) {
        printf("litmus tests: ok\n");
    }
    return 0;
}
