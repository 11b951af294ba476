// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A variable in global memory, declared with OpenMP's allocate directive: clang allocates it at the
// declaration and frees it at the end of the block, on every rank.
#include <diomp.h>
#include <stdio.h>

static int sum_of_ranks(int me) {
    int total;
#pragma omp allocate(total) allocator(ompx_symmetric_mem_alloc)
    total = 0;
    ompx_barrier(); // no rank adds before all ranks have set it to zero

    ompx_atomic_add(0, &total, &me, OMPX_INT32);
    ompx_barrier();
    int answer = 0;
    ompx_get(&answer, 0, &total, sizeof answer);
    ompx_barrier(); // rank 0 keeps its variable until all ranks have read it
    return answer;
}

int main(void) {
    const int me = ompx_rank_num();
    const int ranks = ompx_num_ranks();
    const int total = sum_of_ranks(me);
    if (me == 0) {
        printf("sum of the ranks: %d\n", total);
    }
    return total == ranks * (ranks - 1) / 2 ? 0 : 1;
}
