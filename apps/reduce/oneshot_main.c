// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The allreduce of oneshot.h, many calls in one target region, beside the host's ompx_allreduce:
// checks every result, and prints the time of a call for 8 bytes to 4 KiB.
#include "common/clock.h"
#include "common/need.h"
#include "common/options.h"
#include "reduce/oneshot.h"

#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 128 };

typedef struct oneshot_options {
    int calls;
} oneshot_options;

// The sums of these depend on the order: they have more bits than a double.
static inline double operand_of(int rank, uint64_t call, int i) {
    return 1.0 / (double)(3 * rank + i + 1) + (double)(call % 1000) * 1e6;
}

static inline double expected(int ranks, uint64_t call, int i) {
    double sum = operand_of(0, call, i);
    for (int rank = 1; rank < ranks; ++rank) {
        sum += operand_of(rank, call, i);
    }
    return sum;
}

static oneshot make(void) {
    const int device = omp_get_default_device();
    const size_t ranks = (size_t)ompx_num_ranks();
    oneshot o = {.rank = ompx_rank_num(), .ranks = ompx_num_ranks()};
    o.slots = ompx_target_alloc(2 * ranks * SLOT_DOUBLES * sizeof(double), device,
                                ompx_symmetric_mem_alloc);
    o.arrived = ompx_target_alloc(2 * ranks * sizeof(uint64_t), device, ompx_symmetric_mem_alloc);
    o.failed = omp_target_alloc(sizeof(int), device);
    need(o.slots != NULL && o.arrived != NULL && o.failed != NULL, "oneshot",
         "no memory on the device");
    uint64_t *const arrived = o.arrived;
    int *const failed = o.failed;
#pragma omp target is_device_ptr(arrived, failed)
    {
        *failed = 0;
        for (size_t i = 0; i < 2 * ranks; ++i) {
            arrived[i] = 0;
        }
    }
    return o;
}

// Makes the calls first + 1 to first + calls; returns the seconds, and adds up wrong results.
static double in_region(const oneshot *o, uint64_t first, int calls, int count, int *wrong) {
    double *const slots = o->slots;
    uint64_t *const arrived = o->arrived;
    int *const failed = o->failed;
    const int me = o->rank;
    const int ranks = o->ranks;
    const int device = omp_get_default_device();
    double *const data = omp_target_alloc(2 * SLOT_DOUBLES * sizeof(double), device);
    need(data != NULL, "oneshot", "no memory on the device");
    int errors = 0;
    ompx_barrier();
    const double start = seconds_now();
#pragma omp target teams num_teams(1) thread_limit(THREADS) map(tofrom : errors)                   \
    is_device_ptr(slots, arrived, failed, data)
#pragma omp parallel reduction(+ : errors)
    {
        const oneshot own = {slots, arrived, failed, me, ranks};
        int goes_on = 1;
        for (uint64_t call = first + 1; goes_on && call <= first + (uint64_t)calls; ++call) {
            for (int i = omp_get_thread_num(); i < count; i += omp_get_num_threads()) {
                data[i] = operand_of(me, call, i);
            }
#pragma omp barrier
            goes_on = oneshot_sum(&own, call, data, data + SLOT_DOUBLES, count);
            for (int i = omp_get_thread_num(); i < count; i += omp_get_num_threads()) {
                errors += data[SLOT_DOUBLES + i] != expected(ranks, call, i);
            }
        }
        errors += !goes_on;
    }
    const double seconds = seconds_now() - start;
    omp_target_free(data, device);
    *wrong += errors;
    return seconds;
}

static double by_host(int calls, int count, int *wrong) {
    double data[SLOT_DOUBLES];
    double sum[SLOT_DOUBLES];
    ompx_barrier();
    const double start = seconds_now();
    for (uint64_t call = 1; call <= (uint64_t)calls; ++call) {
        for (int i = 0; i < count; ++i) {
            data[i] = operand_of(ompx_rank_num(), call, i);
        }
        *wrong += ompx_allreduce(data, sum, (size_t)count, OMPX_DOUBLE, OMPX_SUM,
                                 ompx_group_world) != OMPX_SUCCESS;
    }
    return seconds_now() - start;
}

static int run(const oneshot_options *options) {
    oneshot o = make();
    uint64_t called = 0;
    int wrong = 0;
    for (int count = 1; count <= SLOT_DOUBLES; count *= 8) {
        in_region(&o, called, 10, count, &wrong); // warm
        called += 10;
        double seconds[2] = {in_region(&o, called, options->calls, count, &wrong),
                             by_host(options->calls, count, &wrong)};
        called += (uint64_t)options->calls;
        ompx_allreduce(seconds, seconds, 2, OMPX_DOUBLE, OMPX_MAX, ompx_group_world);
        if (o.rank == 0) {
            const double us = 1e6 / options->calls;
            printf("figure allreduce_in_region %zu %.3f us\n", (size_t)count * sizeof(double),
                   seconds[0] * us);
            printf("figure allreduce_by_host %zu %.3f us\n", (size_t)count * sizeof(double),
                   seconds[1] * us);
        }
    }
    ompx_allreduce(&wrong, &wrong, 1, OMPX_INT32, OMPX_SUM, ompx_group_world);
    if (o.rank == 0) {
        printf("check       %s: %d results differ from the sum in the order of the ranks\n",
               wrong == 0 ? "passed" : "failed", wrong);
        fflush(stdout);
    }
    omp_target_free(o.failed, omp_get_default_device());
    ompx_target_free(o.arrived, omp_get_default_device());
    ompx_target_free(o.slots, omp_get_default_device());
    return wrong == 0 ? 0 : 1;
}

static int check_options(const void *options, char *message, size_t message_size) {
    const oneshot_options *const o = options;
    if (o->calls < 1) {
        snprintf(message, message_size, "--calls must be at least 1");
        return 0;
    }
    return 1;
}

int main(int argc, char **argv) {
    oneshot_options o = {.calls = 1000};
    const option_row rows[] = {
        {"--calls", OPTION_INT, 1, 0, &o.calls, "N", "calls in a region, of each size [1000]"},
    };
    int status = 0;
    if (options_handle(rows, 1, argc, argv, check_options, &o, "oneshot",
                       "An allreduce of small data inside target regions.", ompx_rank_num(),
                       &status)) {
        return status;
    }
    return run(&o);
}
