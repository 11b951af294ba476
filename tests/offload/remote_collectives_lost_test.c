/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Collectives on remote devices of which the last rank's does not take part: its session ends
 * during a call ("lost"), or stands still ("stopped", with DIOMP_TIMEOUT), or its rank makes no
 * call ("absent", with DIOMP_TIMEOUT). All ranks get errors. A remote device for each rank;
 * DIOMP_ERRORS=return. Ends with status 3. */
#include "support/check.h"

#include <omp.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { LENGTH = 50000 };

static double *data;

/* Blocks, or does not, with TEST_NB. */
static int sum(void) {
    if (getenv("TEST_NB") != NULL) {
        ompx_event_t event;
        int const started = ompx_target_allreduce_nb(data, data, 0, LENGTH, OMPX_DOUBLE, OMPX_SUM,
                                                     ompx_group_world, &event);
        return started == 0 ? ompx_event_wait(&event) : started;
    }
    return ompx_target_allreduce(data, data, 0, LENGTH, OMPX_DOUBLE, OMPX_SUM, ompx_group_world);
}

static void check_later_calls(int me, int last) {
    char words[64];
    snprintf(words, sizeof words, "rank %d cannot take part", last);
    for (int i = 0; i < 3; ++i) {
        FAILS(sum(), OMPX_ERR_PEER, me == last ? "remote device 0" : words);
    }
}

int main(int argc, char **argv) {
    int const me = ompx_rank_num(), ranks = ompx_num_ranks(), last = ranks - 1;
    char const *const mode = argc > 1 ? argv[1] : "";
    int pid = 0;
    data = calloc(LENGTH, sizeof *data);
#pragma omp target enter data map(to : data[0 : LENGTH])
#pragma omp target map(from : pid)
    pid = getpid();
    CHECK(ranks > 1 && pid > 0 && pid != getpid());
    CHECK(sum() == 0);
    if (strcmp(mode, "lost") == 0) {
        if (me == last) {
            ompx_event_t event;
            CHECK(kill(pid, SIGSTOP) == 0);
            CHECK(ompx_target_allreduce_nb(data, data, 0, LENGTH, OMPX_DOUBLE, OMPX_SUM,
                                           ompx_group_world, &event) == 0);
            usleep(200000); /* the others wait in their sessions, if this is long enough */
            CHECK(kill(pid, SIGKILL) == 0);
            CHECK(ompx_event_wait(&event) == OMPX_ERR_PEER);
            CHECK(strstr(ompx_last_error(), "remote device 0") != NULL);
        } else {
            char words[16];
            snprintf(words, sizeof words, "rank %d", last);
            FAILS(sum(), OMPX_ERR_PEER, words);
        }
        check_later_calls(me, last);
    } else if (strcmp(mode, "stopped") == 0) {
        if (me == last) {
            CHECK(kill(pid, SIGSTOP) == 0);
            FAILS(sum(), OMPX_ERR_PEER, "remote device 0");
            CHECK(kill(pid, SIGKILL) == 0);
        } else {
            int const code = sum();
            CHECK(code == OMPX_ERR_TIMEOUT || code == OMPX_ERR_PEER);
            CHECK(strstr(ompx_last_error(), "remote device 0") != NULL);
        }
        check_later_calls(me, last);
    } else {
        CHECK(strcmp(mode, "absent") == 0);
        if (me == last) {
            sleep(40); /* rank 0 ends the job */
        }
        CHECK(sum() == OMPX_ERR_TIMEOUT);
    }
    if (me == 0) {
        puts("lost device: ok");
        fflush(stdout);
        ompx_abort(3);
    }
    sleep(40);
}
