// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "common/comm.h"
#include "diomp.h"

/* comm:begin */
void comm_init(int *argc, char ***argv) {
    (void)argc; // a program linked with DiOMP starts the runtime by itself
    (void)argv;
}

void comm_finalize(void) { ompx_finalize(); }

int comm_rank(void) { return ompx_rank_num(); }

int comm_ranks(void) { return ompx_num_ranks(); }

const char *comm_name(void) { return "DiOMP"; }

void comm_abort(int code) { ompx_abort(code); }

void *comm_alloc(size_t bytes) {
    void *memory = omp_alloc(bytes, ompx_symmetric_mem_alloc);
    if (memory == NULL) { // DIOMP_ERRORS=return; by default the runtime has ended the job
        ompx_abort(1);
    }
    return memory;
}

void comm_free(void *memory) { omp_free(memory, ompx_symmetric_mem_alloc); }

void comm_barrier(void) { ompx_barrier(); }

void comm_gather(void *whole, void *part, const size_t *offsets) {
    ompx_barrier();
    for (int r = 0; comm_rank() == 0 && r < comm_ranks(); ++r) {
        ompx_get((char *)whole + offsets[r], r, part, offsets[r + 1] - offsets[r]);
    }
    ompx_barrier();
}

double comm_max(double value) {
    ompx_allreduce(&value, &value, 1, OMPX_DOUBLE, OMPX_MAX, ompx_group_world);
    return value;
}

uint64_t comm_sum(uint64_t value) {
    ompx_allreduce(&value, &value, 1, OMPX_UINT64, OMPX_SUM, ompx_group_world);
    return value;
}

void comm_sum_to_root(float *values, size_t count) {
    ompx_reduce(values, values, count, OMPX_FLOAT, OMPX_SUM, 0, ompx_group_world);
}
/* comm:end */
