/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* What the header settles of events itself, and what it leaves to the library: optimised, and with
 * OMPX_NO_INLINE. Ends with 1 and a message on a wrong result. */
#include "diomp.h"

#include <stdio.h>
#include <string.h>

static int failures = 0;

static void expect(int line, long long actual, long long expected) {
    if (actual != expected) {
        fprintf(stderr, "rank %d, line %d: %lld instead of %lld\n", ompx_get_rank_num(), line,
                actual, expected);
        ++failures;
    }
}
#define EXPECT(actual, expected) expect(__LINE__, (long long)(actual), (long long)(expected))

static void check_misuse(void) {
    ompx_event_t over = NULL;
    int done = 7;
    EXPECT(ompx_event_wait(NULL), OMPX_ERR_ARG);
    EXPECT(strstr(ompx_last_error(), "ompx_event_wait(") != NULL, 1);
    EXPECT(ompx_event_test(NULL, &done), OMPX_ERR_ARG);
    EXPECT(ompx_event_test(&over, NULL), OMPX_ERR_ARG);
    EXPECT(strstr(ompx_last_error(), "ompx_event_test(") != NULL, 1);
    EXPECT(ompx_event_wait(&over), OMPX_SUCCESS);
    EXPECT(ompx_event_test(&over, &done), OMPX_SUCCESS);
    EXPECT(done, 1);
}

/* The calls by their addresses are the library's. */
static void check_transfers(int (*wait)(ompx_event_t *), int (*test)(ompx_event_t *, int *)) {
    int const right = (ompx_get_rank_num() + 1) % ompx_get_num_ranks();
    long *const space = ompx_alloc(sizeof(long), 8, OMPX_MEM_SYMMETRIC);
    EXPECT(space != NULL, 1);
    for (long round = 1; space != NULL && round <= 100; ++round) {
        long const sent = 1000 * round + right;
        long back = 0;
        ompx_event_t event = NULL;
        EXPECT(ompx_put_nb(right, space, &sent, sizeof(sent), &event), OMPX_SUCCESS);
        EXPECT(wait != NULL ? wait(&event) : ompx_event_wait(&event), OMPX_SUCCESS);
        EXPECT(event == NULL, 1);
        EXPECT(ompx_get_nb(&back, right, space, sizeof(back), &event), OMPX_SUCCESS);
        for (int done = 0; !done;) {
            EXPECT(test != NULL ? test(&event, &done) : ompx_event_test(&event, &done),
                   OMPX_SUCCESS);
        }
        EXPECT(back, sent);
    }
    EXPECT(ompx_barrier(), OMPX_SUCCESS);
    EXPECT(ompx_free(space), OMPX_SUCCESS);
}

int main(void) {
    check_misuse();
    check_transfers(NULL, NULL);
    check_transfers(ompx_event_wait, ompx_event_test);
    return failures != 0;
}
