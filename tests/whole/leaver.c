/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * A program that ends while another of its threads is in calls: `leaver WHO CALL [STATUS]`.
 * exit_test.py runs it. */
#include "support/check.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 1 << 17, LARGE = 1 << 20 };

static int me, ranks, peer;
static int64_t *memory; /* symmetric, COUNT elements */
static const char *kind;
static atomic_int num_calls;
static int exit_status;
static char local[LARGE];

static void make_call(void) {
    int64_t one = 1;
    int64_t before = 0;
    if (strcmp(kind, "put") == 0) {
        ompx_put(peer, memory, &one, sizeof(one));
    } else if (strcmp(kind, "fence") == 0) {
        ompx_put(peer, memory, &one, sizeof(one));
        ompx_fence();
    } else if (strcmp(kind, "large") == 0) {
        ompx_put(peer, memory, local, LARGE);
        ompx_fence();
    } else if (strcmp(kind, "get") == 0) {
        ompx_get(local, peer, memory, LARGE);
    } else if (strcmp(kind, "atomic") == 0) {
        ompx_atomic_fetch_add(peer, memory, &one, &before, OMPX_INT64);
    } else if (strcmp(kind, "lock") == 0) {
        ompx_lock(peer);
        ompx_unlock(peer);
    } else if (strcmp(kind, "memory") == 0) {
        ompx_free(ompx_alloc(64, 0, OMPX_MEM_LOCAL));
    } else if (strcmp(kind, "wait") == 0) {
        atomic_fetch_add(&num_calls, 1 << 10); /* it has none to count */
        ompx_wait_until(memory + 1, OMPX_INT64, OMPX_CMP_EQ, &one);
    } else {
        ompx_abort(2);
    }
}

static void *keep_calling(void *unused) {
    (void)unused;
    for (;;) {
        make_call();
        atomic_fetch_add(&num_calls, 1);
    }
    return NULL;
}

/* Until the other thread is in the midst of it. */
static void wait_for_calls(void) {
    while (atomic_load(&num_calls) < 50) {
        usleep(100);
    }
}

static void *leave(void *unused) {
    (void)unused;
    wait_for_calls();
    exit(exit_status);
}

static void *no_thread(void *unused) { return unused; }

static void start(void *(*body)(void *)) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, body, NULL) == 0);
    CHECK(pthread_detach(thread) == 0);
}

/* When the variables of the main thread are gone. */
static void use_all_at_exit(void) {
    CHECK(ompx_put(peer, memory, local, LARGE) == 0);
    CHECK(ompx_fence() == 0);
    CHECK(ompx_put(ranks, memory, local, 8) == OMPX_ERR_RANK);
    CHECK(strstr(ompx_last_error(), "outside the world") != NULL);
}

static void leave_in_handler(int signal_number) {
    (void)signal_number;
    exit(exit_status);
}

int main(int argc, char **argv) {
    if (argc < 3) {
        return 2;
    }
    kind = argv[2];
    exit_status = argc > 3 ? atoi(argv[3]) : 0;
    me = ompx_rank_num();
    ranks = ompx_num_ranks();
    peer = (me + 1) % ranks;
    memory = ompx_alloc(COUNT * sizeof(*memory), 0, OMPX_MEM_SYMMETRIC);
    memset(memory, 0, COUNT * sizeof(*memory));
    ompx_barrier();
    if (strcmp(argv[1], "main") == 0) {
        start(keep_calling);
        wait_for_calls();
    } else if (strcmp(argv[1], "thread") == 0) {
        start(leave);
        keep_calling(NULL);
    } else if (strcmp(argv[1], "one_thread") == 0) { /* the other ranks have nothing to do */
        if (me == 0) {
            start(leave);
            keep_calling(NULL);
        }
    } else if (strcmp(argv[1], "quick_exit") == 0) {
        start(keep_calling);
        wait_for_calls();
        quick_exit(exit_status);
    } else if (strcmp(argv[1], "exit_handler") == 0) {
        CHECK(ompx_put(peer, memory, local, LARGE) == 0); /* what the thread learns of copies */
        CHECK(atexit(use_all_at_exit) == 0);
        start(no_thread);
    } else if (strcmp(argv[1], "signal_handler") == 0) {
        signal(SIGALRM, leave_in_handler);
        ualarm(100000, 0);
        int64_t const never = 1;
        ompx_wait_until(memory + 1, OMPX_INT64, OMPX_CMP_EQ, &never);
    } else {
        return 2;
    }
    return exit_status;
}
