/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Static data that was symmetric keeps its values when the runtime ends, and is the program's. */
#include <diomp.h>
#include <stdio.h>

enum { count = 100000 };

static long data[count];
static long first[4] = {7, 8, 9, 10};

int main(void) {
    int const me = ompx_rank_num();
    int const next = (me + 1) % ompx_num_ranks();
    int const before = (me + ompx_num_ranks() - 1) % ompx_num_ranks();
    data[count - 1] = 5;
    if (ompx_register_symmetric(data, sizeof(data)) != 0) {
        return 1;
    }
    long const value = 100 + me;
    if (ompx_put(next, &data[count / 2], &value, sizeof(value)) != 0 || ompx_barrier() != 0 ||
        ompx_finalize() != 0) {
        return 2;
    }
    first[1] += data[count / 2];
    data[0] = first[1];
    int const is_kept = data[count / 2] == 100 + before && data[count - 1] == 5 && data[1] == 0;
    int const is_writable = data[0] == 108 + before && first[0] == 7 && first[3] == 10;
    if (!is_kept || !is_writable) {
        fprintf(stderr, "rank %d: %ld %ld %ld, %ld\n", me, data[0], data[count / 2],
                data[count - 1], first[0]);
    }
    return is_kept && is_writable ? 0 : 3;
}
