/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * The directives with the runtime itself, on the devices of host ranks. Runs with
 * DIOMP_ERRORS=return. */
#include "support/check.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>

enum { DEVICES = 2, LENGTH = 5000 };

static int me, ranks, size;
static int devices[DEVICES];
static ompx_group_t all;
static double *field;
static double weights[3];

static void set(double base) {
    for (int i = 0; i < DEVICES; ++i) {
        double const value = base + me * DEVICES + i;
        double *const f = field;
#pragma omp target device(devices[i]) map(to : f[0 : LENGTH], weights)
        {
            for (int k = 0; k < LENGTH; ++k) {
                f[k] = value;
            }
            weights[0] = weights[1] = weights[2] = value;
        }
    }
}

static int holds(double value, size_t begin, size_t end) {
    int wrong = 0;
    for (int i = 0; i < DEVICES; ++i) {
        double *const f = field;
#pragma omp target device(devices[i]) map(to : f[0 : LENGTH]) map(tofrom : wrong)
        for (size_t k = begin; k < end; ++k) {
            wrong += f[k] != value;
        }
    }
    return wrong == 0;
}

static int weights_hold(double value) {
    int wrong = 0;
    for (int i = 0; i < DEVICES; ++i) {
#pragma omp target device(devices[i]) map(to : weights) map(tofrom : wrong)
        wrong += weights[0] != value || weights[2] != value;
    }
    return wrong == 0;
}

static int holds_nans(size_t end) {
    int wrong = 0;
    for (int i = 0; i < DEVICES; ++i) {
        double *const f = field;
#pragma omp target device(devices[i]) map(to : f[0 : LENGTH]) map(tofrom : wrong)
        for (size_t k = 0; k < end; ++k) {
            wrong += f[k] == f[k];
        }
    }
    return wrong == 0;
}

static double weight_of(int device) {
    double got = 0;
#pragma omp target device(devices[device]) map(to : weights) map(from : got)
    got = weights[0];
    return got;
}

static void blocking(void) {
    double const sum = size * (size - 1) / 2.0;
    set(0);
#pragma ompx target device_allreduce(+ : field[0 : LENGTH], all)
    CHECK(holds(sum, 0, LENGTH));
    set(0);
#pragma ompx target device_allreduce(avg : weights, all)
    CHECK(weights_hold(sum / size));
    set(7);
#pragma ompx target device_bcast(weights, all) root(size - 1)
    CHECK(weights_hold(7 + size - 1));
#pragma ompx target device_bcast(field[100 : 50], all)
    CHECK(holds(7, 100, 150));
    set(1);
    size_t const block = 64;
#pragma ompx target device_allgather(field[0 : block], field[LENGTH - block : block], all)
    for (int member = 0; member < size; ++member) {
        CHECK(holds(1 + member, (size_t)member * block, (size_t)(member + 1) * block));
    }
#pragma ompx barrier group(all)
#pragma ompx fence
    /* A group of ranks: each brings one device. */
    set(0);
#pragma ompx target device_reduce(max : field[0 : 10]) device(devices[1]) root(ranks - 1)
    if (me == ranks - 1) {
        double got = 0;
        double *const f = field;
#pragma omp target device(devices[1]) map(to : f[0 : LENGTH]) map(from : got)
        got = f[9];
        CHECK(got == (ranks - 1) * DEVICES + 1);
    }
    /* A NaN anywhere is the result everywhere. */
    set(me == ranks - 1 ? NAN : 0);
#pragma ompx target device_allreduce(max : field[0 : LENGTH], all)
    CHECK(holds_nans(LENGTH));
    set(me == 0 ? NAN : 0);
#pragma ompx target device_allreduce(min : weights, all)
    CHECK(isnan(weight_of(0)));
}

/* Block m has m + 1 elements, with a gap of one behind each where all blocks are. */
static void blocks_of_many_sizes(void) {
    int counts[64], displs[64], at = 0;
    CHECK(size <= 64);
    for (int m = 0; m < size; ++m) {
        counts[m] = m + 1;
        displs[m] = at;
        at += m + 2;
    }
    set(5);
#pragma ompx target device_allgatherv(field[0 : LENGTH], field[LENGTH - 100 : 100], all)           \
    counts(counts) displs(displs)
    for (int m = 0; m < size; ++m) {
        CHECK(holds(5 + m, (size_t)displs[m], (size_t)(displs[m] + counts[m])));
    }
    /* From the first member; every device of this rank gets so many at least. */
    set(-1);
    size_t const least = (size_t)me * DEVICES + 1;
#pragma ompx target device_scatterv(field[LENGTH - 100 : 100], field[0 : LENGTH], all)             \
    counts(counts) displs(displs)
    CHECK(holds(-1, LENGTH - 100, LENGTH - 100 + least));
    /* As a task, whose lists are those of now. Without displacements there are no gaps. */
    set(9);
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma ompx target device_gatherv(field[0 : LENGTH], field[LENGTH - 100 : 100], all)              \
    counts(counts) root(size - 1) nowait
        counts[0] = 1000000;
#pragma omp taskwait
    }
    if (me == ranks - 1) {
        int wrong = 0, begin = 0;
        double *const f = field;
        for (int m = 0; m < size; begin += ++m) {
#pragma omp target device(devices[DEVICES - 1]) map(to : f[0 : LENGTH]) map(tofrom : wrong)
            for (int k = begin; k < begin + m + 1; ++k) {
                wrong += f[k] != 9 + m;
            }
        }
        CHECK(wrong == 0);
    }
    size_t twos[64], places[64];
    for (int m = 0; m < size; ++m) {
        twos[m] = 2;
        places[m] = 2 * (size_t)m;
    }
    set(20);
#pragma ompx target device_alltoallv(field[0 : LENGTH], field[LENGTH - 200 : 200], all)            \
    dst_counts(twos) dst_displs(places) src_counts(twos) src_displs(places)
    for (int m = 0; m < size; ++m) {
        CHECK(holds(20 + m, places[m], places[m] + 2));
    }
}

static void in_tasks(void) {
    double const sum = size * (size - 1) / 2.0;
#pragma omp parallel num_threads(2)
#pragma omp single
    {
        set(0);
#pragma ompx target device_allreduce(+ : field[0 : LENGTH], all) nowait depend(out : field[0])
#pragma ompx target device_allreduce(min : field[0 : LENGTH], all) nowait depend(inout : field[0])
#pragma omp task depend(in : field[0])
        CHECK(holds(sum, 0, LENGTH));
#pragma omp taskwait
        set(3);
#pragma ompx target device_bcast(weights, all) nowait
#pragma omp taskwait
        CHECK(weights_hold(3));
    }
}

/* An error in a task's call fulfils the event all the same: the taskwait ends. */
static void mistakes(void) {
    double alone[4] = {0};
#pragma ompx target device_bcast(alone, all)
    CHECK(ompx_last_error()[0] != 0);
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma ompx target device_bcast(alone, all) nowait
#pragma omp taskwait
    }
    CHECK(ompx_barrier() == 0);
}

int main(void) {
    me = ompx_rank_num();
    ranks = ompx_num_ranks();
    CHECK(ompx_group_create_devices(ompx_group_world, &all) == 0);
    size = ompx_group_size(all);
    field = malloc(sizeof(double) * LENGTH);
    double *const f = field;
    for (int i = 0; i < DEVICES; ++i) {
        devices[i] = ompx_rank_device(i);
#pragma omp target enter data device(devices[i]) map(alloc : f[0 : LENGTH], weights)
    }
    blocking();
    blocks_of_many_sizes();
    in_tasks();
    mistakes();
    for (int i = 0; i < DEVICES; ++i) {
#pragma omp target exit data device(devices[i]) map(release : f[0 : LENGTH], weights)
    }
    CHECK(ompx_group_free(&all) == 0);
    free(field);
    return 0;
}
