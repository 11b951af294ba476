/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* What the header settles of events itself, and what it leaves to the library: optimised, and with
 * OMPX_NO_INLINE. */
#include "support/check.h"

static void check_misuse(void) {
    ompx_event_t over = NULL;
    int done = 7;
    FAILS(ompx_event_wait(NULL), OMPX_ERR_ARG, "ompx_event_wait(");
    FAILS(ompx_event_test(NULL, &done), OMPX_ERR_ARG, "ompx_event_test(");
    FAILS(ompx_event_test(&over, NULL), OMPX_ERR_ARG, "ompx_event_test(");
    CHECK(done == 7);
    CHECK(ompx_event_wait(&over) == OMPX_SUCCESS);
    CHECK(ompx_event_test(&over, &done) == OMPX_SUCCESS);
    CHECK(done == 1);
}

/* The calls by their addresses are the library's; NULL: as they are written. */
static void check_transfers(int (*wait)(ompx_event_t *), int (*test)(ompx_event_t *, int *)) {
    int const right = (ompx_rank_num() + 1) % ompx_num_ranks();
    long *const space = ompx_alloc(sizeof(long), 8, OMPX_MEM_SYMMETRIC);
    CHECK(space != NULL);
    for (long round = 1; round <= 100; ++round) {
        long const sent = 1000 * round + right;
        long back = 0;
        ompx_event_t event = NULL;
        CHECK(ompx_put_nb(right, space, &sent, sizeof(sent), &event) == OMPX_SUCCESS);
        CHECK((wait != NULL ? wait(&event) : ompx_event_wait(&event)) == OMPX_SUCCESS);
        CHECK(event == NULL);
        CHECK(ompx_get_nb(&back, right, space, sizeof(back), &event) == OMPX_SUCCESS);
        for (int done = 0; !done;) {
            int const asked = test != NULL ? test(&event, &done) : ompx_event_test(&event, &done);
            CHECK(asked == OMPX_SUCCESS);
        }
        CHECK(back == sent);
    }
    CHECK(ompx_barrier() == OMPX_SUCCESS);
    CHECK(ompx_free(space) == OMPX_SUCCESS);
}

int main(void) {
    check_misuse();
    check_transfers(NULL, NULL);
    check_transfers(ompx_event_wait, ompx_event_test);
    return 0;
}
