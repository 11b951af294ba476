/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* A program of SHMEM that also calls DiOMP; compiled by diompcc --shmem. */
#include <diomp.h>
#include <shmem.h>
#include <stdio.h>

int main(void) {
    static long received;
    shmem_init();
    int const me = shmem_my_pe();
    int const num_pes = shmem_n_pes();
    long const sent = 100 + me;
    shmem_putmem(&received, &sent, sizeof(sent), (me + 1) % num_pes);
    shmem_barrier_all();
    int const expected = 100 + (me + num_pes - 1) % num_pes;
    int const is_right = received == expected && me == ompx_rank_num();
    shmem_finalize();
    if (is_right) {
        printf("PE %d of %d: %ld\n", me, num_pes, received);
    }
    return is_right ? 0 : 1;
}
