/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * The device of rank 1 is lost while rank 0 uses it: calls return an error at once, on the host and
 * in regions. Two ranks with a remote device each, whose sessions share memory unless
 * DIOMP_NODE_SIZE is 1; DIOMP_ERRORS=return. Ends with status 3. */
#include "support/check.h"

#include <omp.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { BYTES = 1 << 20 };

int main(void) {
    int const me = ompx_rank_num(), host = omp_get_initial_device();
    char *const block = ompx_target_alloc(BYTES, 0, ompx_symmetric_mem_alloc);
    uint64_t *const signal = ompx_target_alloc(sizeof *signal, 0, ompx_symmetric_mem_alloc);
    int *const session = omp_alloc(sizeof *session, ompx_symmetric_mem_alloc);
    char *const plain = malloc(BYTES);
    char *const other = ompx_target_alloc(4096, 0, ompx_local_mem_alloc);
    int pid = 0;
    CHECK(ompx_num_ranks() == 2 && block != NULL && signal != NULL && session != NULL);
#pragma omp target is_device_ptr(signal) map(from : pid)
    {
        *signal = 0;
        pid = getpid();
    }
    CHECK(ompx_barrier() == 0);
    CHECK(ompx_put(0, session, me == 1 ? &pid : session, me == 1 ? sizeof pid : 0) == 0);
    CHECK(ompx_fence() == 0 && ompx_barrier() == 0);
    if (me == 1) {
        sleep(40); /* rank 0 ends the job */
    }
    CHECK(ompx_target_get(plain, host, 1, block, 0, BYTES) == 0);
    CHECK(ompx_target_put(1, block, 0, block, 0, BYTES) == 0);
    CHECK(*session > 0 && kill(*session, SIGKILL) == 0);
    /* Shared memory remains until the system has reported the end of the process. */
    for (int i = 0; i < 2000 && ompx_target_put(1, block, 0, block, 0, 8) == 0; ++i) {
        usleep(1000);
    }
    FAILS(ompx_target_get(plain, host, 1, block, 0, BYTES), OMPX_ERR_PEER, "ompx_target_get");
    ompx_event_t event = NULL; /* without waiting: with an event, and until a fence */
    int outcome = ompx_target_put_nb(1, block, 0, block, 0, BYTES, &event);
    CHECK((outcome != 0 ? outcome : ompx_event_wait(&event)) == OMPX_ERR_PEER);
    outcome = ompx_target_get_nb(block, 0, 1, block, 0, BYTES, NULL);
    CHECK((outcome != 0 ? outcome : ompx_fence()) == OMPX_ERR_PEER);
    outcome = ompx_target_put_nb(1, block, 0, plain, host, BYTES, NULL);
    usleep(100000);
    CHECK(ompx_target_free(other, 0) == 0); /* keeps the error for the fence */
#pragma omp target map(tofrom : pid)
    pid = 0;
    CHECK((outcome != 0 ? outcome : ompx_fence()) == OMPX_ERR_PEER);
    CHECK(strstr(ompx_last_error(), "remote device 1") != NULL);
    CHECK(ompx_fence() == 0); /* once */
    for (int i = 0; i < 3; ++i) {
        FAILS(ompx_target_get(plain, host, 1, block, 0, BYTES), OMPX_ERR_PEER, "ompx_target_get");
        FAILS(ompx_target_put(1, block, 0, block, 0, BYTES), OMPX_ERR_PEER, "remote device 1");
    }
    int status[2] = {0, 0};
#pragma omp target is_device_ptr(signal, block) map(from : status)
    {
        status[0] = ompx_put_signal(1, block, block, 8, signal, 1, OMPX_SIGNAL_SET) | ompx_fence();
        status[1] = ompx_signal_wait(signal, OMPX_CMP_GE, 1); /* only rank 1 would send it */
    }
    /* In shared memory a put does not notice the loss. */
    char const *const size = getenv("DIOMP_NODE_SIZE");
    CHECK(size == NULL || strcmp(size, "1") != 0 || status[0] != 0);
    CHECK(status[1] == OMPX_ERR_PEER);
    CHECK(ompx_target_get(plain, host, 0, block, 0, BYTES) == 0); /* the own device works */
    puts("lost device: ok");
    fflush(stdout);
    ompx_abort(3);
}
