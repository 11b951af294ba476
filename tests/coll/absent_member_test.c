/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * The last rank makes no call. The waits for the events of the others' calls, which do not block,
 * end with an error that names it and the call. The argument is the way of waiting; "queued" waits
 * for the last one of several calls. For 2 ranks or more, with DIOMP_ERRORS=return and
 * DIOMP_TIMEOUT=1. Ends with status 3. */
#include "support/check.h"

#include <time.h>
#include <unistd.h>

enum { LENGTH = 1000 };

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int wait_for(ompx_event_t *event, const char *how) {
    size_t index;
    int done = 0;
    if (strcmp(how, "wait") == 0 || strcmp(how, "queued") == 0) {
        return ompx_event_wait(event);
    }
    if (strcmp(how, "all") == 0) {
        return ompx_event_wait_all(event, 1);
    }
    if (strcmp(how, "any") == 0) {
        return ompx_event_wait_any(event, 1, NULL, &index);
    }
    CHECK(strcmp(how, "test") == 0);
    for (;;) {
        int const code = ompx_event_test(event, &done);
        if (code != 0 || done) {
            return code;
        }
        usleep(100);
    }
}

int main(int argc, char **argv) {
    int const me = ompx_rank_num(), ranks = ompx_num_ranks(), last = ranks - 1;
    static double from[LENGTH], to[LENGTH];
    char words[64];
    CHECK(argc == 2 && ranks > 1);
    CHECK(ompx_allreduce(to, from, LENGTH, OMPX_DOUBLE, OMPX_SUM, ompx_group_world) == 0);
    if (me == last) {
        sleep(20); /* rank 0 ends the job */
        return 0;
    }
    ompx_event_t event;
    double const begin = seconds();
    int const calls = strcmp(argv[1], "queued") == 0 ? 10 : 1;
    for (int call = 0; call < calls; ++call) { /* the last one is waited for */
        CHECK(ompx_allreduce_nb(to, from, LENGTH, OMPX_DOUBLE, OMPX_SUM, ompx_group_world,
                                &event) == 0);
    }
    int const code = wait_for(&event, argv[1]);
    CHECK(code == OMPX_ERR_TIMEOUT || (calls > 1 && code == OMPX_ERR_PEER));
    CHECK(seconds() - begin < 8); /* not a second for each call */
    snprintf(words, sizeof words, "waiting for rank %d in ompx_allreduce", last);
    CHECK(ranks > 2 || strstr(ompx_last_error(), words) != NULL);
    CHECK(strstr(ompx_last_error(), "in ompx_allreduce(count=1000") != NULL);
    if (me == 0) {
        puts("absent member: ok");
        fflush(stdout);
        ompx_abort(3);
    }
    sleep(20);
    return 0;
}
