/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Times collectives as diomp-sim defines their time, between ranks on hosts with one clock (test
 * hosts of one machine): all ranks begin at the same moment, and the time ends when the last one
 * has returned.
 *
 *   measured_job REPEATS PAUSE_MS COLLECTIVE:BYTES...
 *
 * Prints a line of JSON for each: the median of REPEATS calls, after three more that do not count.
 * PAUSE_MS: until all ranks know when the next call begins. */
#include <diomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WARM_UP = 3 };

static void check(int status) {
    if (status < 0) {
        ompx_abort(1);
    }
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void sleep_until(double when) {
    struct timespec const time = {(time_t)when, (long)(1e9 * (when - (double)(time_t)when))};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) != 0) {
    }
}

/* bytes: of the vector of a bcast or an allreduce, of a block of the others */
static void call(const char *collective, void *dst, const void *src, size_t bytes) {
    if (strcmp(collective, "barrier") == 0) {
        check(ompx_barrier());
    } else if (strcmp(collective, "bcast") == 0) {
        check(ompx_bcast_from(dst, bytes, 0, ompx_group_world));
    } else if (strcmp(collective, "allreduce") == 0) {
        check(ompx_allreduce(dst, src, bytes / sizeof(double), OMPX_DOUBLE, OMPX_SUM,
                             ompx_group_world));
    } else if (strcmp(collective, "allgather") == 0) {
        check(ompx_allgather(dst, src, bytes, ompx_group_world));
    } else if (strcmp(collective, "alltoall") == 0) {
        check(ompx_alltoall(dst, src, bytes, ompx_group_world));
    } else {
        fprintf(stderr, "measured_job: no collective '%s'\n", collective);
        ompx_abort(1);
    }
}

static double seconds_of_one(const char *collective, void *dst, const void *src, size_t bytes,
                             double pause) {
    double begin = now() + pause;
    check(ompx_bcast_from(&begin, sizeof(begin), 0, ompx_group_world));
    sleep_until(begin);
    call(collective, dst, src, bytes);
    double const own = now() - begin;
    double last = 0;
    check(ompx_allreduce(&last, &own, 1, OMPX_DOUBLE, OMPX_MAX, ompx_group_world));
    return last;
}

static int is_less(const void *a, const void *b) {
    double const x = *(const double *)a;
    double const y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const char *collective, size_t bytes, int repeats, double pause) {
    size_t const all = (size_t)ompx_num_ranks() * (bytes > 0 ? bytes : 1);
    void *const src = calloc(all, 1);
    void *const dst = calloc(all, 1);
    double *const seconds = calloc((size_t)repeats, sizeof(double));
    if (src == NULL || dst == NULL || seconds == NULL) {
        ompx_abort(1);
    }
    for (int i = -WARM_UP; i < repeats; ++i) {
        double const taken = seconds_of_one(collective, dst, src, bytes, pause);
        if (i >= 0) {
            seconds[i] = taken;
        }
    }
    qsort(seconds, (size_t)repeats, sizeof(double), is_less);
    if (ompx_rank_num() == 0) {
        printf("{\"collective\": \"%s\", \"bytes\": %zu, \"ranks\": %d, \"seconds\": %.9g, "
               "\"least\": %.9g}\n",
               collective, bytes, ompx_num_ranks(), seconds[repeats / 2], seconds[0]);
        fflush(stdout);
    }
    free(seconds);
    free(dst);
    free(src);
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: measured_job REPEATS PAUSE_MS COLLECTIVE:BYTES...\n");
        return 2;
    }
    int const repeats = atoi(argv[1]);
    double const pause = 1e-3 * atof(argv[2]);
    for (int i = 3; i < argc; ++i) {
        char collective[32] = "";
        size_t bytes = 0;
        if (repeats < 1 || sscanf(argv[i], "%31[a-z]:%zu", collective, &bytes) != 2) {
            fprintf(stderr, "measured_job: '%s' is not COLLECTIVE:BYTES\n", argv[i]);
            return 2;
        }
        measure(collective, bytes, repeats, pause);
    }
    return 0;
}
