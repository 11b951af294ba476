/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * The session of rank 0's device is stopped for longer than DIOMP_TIMEOUT, which is 2, and
 * continues: the device stays lost, also where its memory is still mapped. Two ranks with a remote
 * device each; DIOMP_ERRORS=return. Ends with status 3. */
#include "support/check.h"

#include <omp.h>
#include <signal.h>
#include <unistd.h>

enum { BYTES = 1 << 20 };

int main(void) {
    int const me = ompx_rank_num(), host = omp_get_initial_device();
    char *const block = ompx_target_alloc(2L * BYTES, 0, ompx_symmetric_mem_alloc);
    int pid = 0, value = 7;
    CHECK(ompx_num_ranks() == 2 && block != NULL);
#pragma omp target map(from : pid)
    pid = getpid();
    CHECK(ompx_target_put(me, block, 0, &value, host, sizeof value) == 0);
    CHECK(ompx_barrier() == 0);
    if (me == 1) {
        sleep(60); /* rank 0 ends the job */
    }
    CHECK(kill(pid, SIGSTOP) == 0);
    int outcome = 0;
    for (int i = 0; i < 20 && outcome != OMPX_ERR_PEER; ++i) {
        ompx_event_t event = NULL;
        outcome = ompx_target_put_nb(1, block, 0, block + BYTES, 0, BYTES, &event);
        outcome = outcome != 0 ? outcome : ompx_event_wait(&event);
    }
    CHECK(outcome == OMPX_ERR_PEER);
    CHECK(kill(pid, SIGCONT) == 0);
    for (int i = 0; i < 3; ++i) {
        FAILS(ompx_target_put(0, block, 0, &value, host, sizeof value), OMPX_ERR_PEER,
              "remote device 0");
        FAILS(ompx_target_get(&value, host, 0, block, 0, sizeof value), OMPX_ERR_PEER,
              "remote device 0");
        FAILS(ompx_target_put(0, block, 0, block + BYTES, 0, 8), OMPX_ERR_PEER, "");
        CHECK(omp_target_memcpy(block, &value, sizeof value, 0, 0, 0, host) != 0);
    }
    puts("lost device: ok");
    fflush(stdout);
    ompx_abort(3);
}
