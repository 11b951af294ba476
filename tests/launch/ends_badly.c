// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// usage: ends_badly PHASE ACTION RANK
// One rank ends by ACTION (exit3, _exit4, _exit0, ompx5, ompx0, or a signal's number) while all
// ranks are in PHASE: none of the others may take the blame for it. With DIOMP_ERRORS=return they
// leave with status 1 by themselves. For first_cause_test.py and hosts/first_cause_test.py.
#include <diomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { nbytes = 4 << 20, delay_us = 20000 };

static const char *action;

static void end_badly(void) {
    if (strcmp(action, "exit3") == 0) {
        exit(3);
    } else if (strcmp(action, "_exit4") == 0) {
        _exit(4);
    } else if (strcmp(action, "_exit0") == 0) {
        _exit(0);
    } else if (strcmp(action, "ompx5") == 0) {
        ompx_abort(5);
    } else if (strcmp(action, "ompx0") == 0) {
        ompx_abort(0);
    }
    kill(getpid(), atoi(action));
    pause();
}

static void *end_later(void *unused) {
    (void)unused;
    usleep(delay_us);
    end_badly();
    return NULL;
}

static void check(int status) {
    if (status != OMPX_SUCCESS) {
        fprintf(stderr, "rank %d: %d: %s\n", ompx_rank_num(), status, ompx_last_error());
        exit(1);
    }
}

/// The calls of a phase, without end.
static void repeat(const char *phase, char *symmetric, char *local) {
    int const next = (ompx_rank_num() + 1) % ompx_num_ranks();
    if (strcmp(phase, "barrier") == 0) {
        check(ompx_barrier());
    } else if (strcmp(phase, "put") == 0) {
        check(ompx_put(next, symmetric, local, nbytes));
        check(ompx_fence());
    } else if (strcmp(phase, "get") == 0) {
        check(ompx_get(local, next, symmetric, nbytes));
    } else if (strcmp(phase, "allreduce") == 0) {
        check(ompx_allreduce(symmetric, local, 5000, OMPX_DOUBLE, OMPX_SUM, ompx_group_world));
    } else if (strcmp(phase, "lock") == 0) {
        check(ompx_lock(0));
        check(ompx_unlock(0));
    } else if (strcmp(phase, "signal") == 0) {
        check(ompx_signal_wait((uint64_t *)symmetric, OMPX_CMP_GE, 1));
    } else {
        fprintf(stderr, "ends_badly: no phase %s\n", phase);
        exit(2);
    }
}

int main(int argc, char **argv) {
    if (argc < 4) {
        return 2;
    }
    action = argv[2];
    int const ends = ompx_rank_num() == atoi(argv[3]);
    char *const symmetric = ompx_alloc(nbytes, 64, OMPX_MEM_SYMMETRIC);
    char *const local = malloc(nbytes);
    if (symmetric == NULL || local == NULL) {
        return 2;
    }
    memset(symmetric, 0, nbytes);
    memset(local, 0, nbytes);
    check(ompx_barrier());
    if (strcmp(argv[1], "wait") == 0) { // the others are in a barrier, the rank computes
        if (ends) {
            usleep(delay_us);
            end_badly();
        }
        check(ompx_barrier());
        return 0;
    }
    pthread_t thread;
    if (ends) {
        pthread_create(&thread, NULL, end_later, NULL);
    }
    while (1) {
        repeat(argv[1], symmetric, local);
    }
}
