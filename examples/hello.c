// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Each rank puts its number into the memory of its right neighbour.
#include <diomp.h>
#include <stdio.h>

int main(void) {
    const int me = ompx_rank_num();
    const int ranks = ompx_num_ranks();
    int *box = ompx_alloc(sizeof *box, 0, OMPX_MEM_SYMMETRIC);

    ompx_put((me + 1) % ranks, box, &me, sizeof me);
    ompx_barrier(); // includes a fence: all boxes are filled now
    printf("rank %d of %d: my left neighbour is %d\n", me, ranks, *box);

    const int right_answer = (me + ranks - 1) % ranks;
    return *box == right_answer ? 0 : 1;
}
