/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * The last rank does not end: the others' exit() gives up, with DIOMP_TIMEOUT. */
#include <diomp.h>
#include <unistd.h>

int main(void) {
    if (ompx_rank_num() == ompx_num_ranks() - 1) {
        sleep(30); /* the launcher ends it */
    }
    return 0;
}
