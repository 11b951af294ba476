/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* nowait and depend in a graph of tasks. The stand-in's events take 50 ms and write what they would
 * have received. */
#include "recorder.h"

#include <stdio.h>

static int failures;

static void expect(int got, int wanted, const char *what) {
    if (got != wanted) {
        printf("FAILED: %s: %d instead of %d\n", what, got, wanted);
        ++failures;
    }
}

/* The collective comes after the task that writes its buffer, and before the one that reads it. */
static void chain(void) {
    int x = 0;
    int seen_before = -1;
    int seen_after = -1;
    recorder_name(&x, sizeof(x), "x");
    recorder_complete_with(&x, 7);
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma omp task depend(out : x) shared(x)
        x = 1;
#pragma omp task depend(in : x) shared(x, seen_before)
        seen_before = x;
#pragma ompx target device_bcast(x) nowait depend(inout : x)
#pragma omp task depend(in : x) shared(x, seen_after)
        seen_after = x;
    }
    expect(seen_before, 1, "what comes before sees the old value");
    expect(seen_after, 7, "what comes after waits for the end");
    recorder_forget();
}

/* Without depend it is a task like any other: taskwait waits for its end, the line after it does
 * not. */
static void deferred(int threads) {
    int x = 0;
    int at_once = -1;
    int later = -1;
    recorder_name(&x, sizeof(x), "x");
    recorder_complete_with(&x, 3);
    recorder_hold(1);
#pragma omp parallel num_threads(threads)
#pragma omp single
    {
#pragma ompx target device_allreduce(+ : x) nowait
        at_once = *(volatile int *)&x;
        recorder_hold(0);
#pragma omp taskwait
        later = x;
    }
    expect(at_once, 0, "nowait does not wait");
    expect(later, 3, "taskwait does");
    recorder_forget();
}

/* The end of the parallel region waits too. */
static void at_the_barrier(void) {
    int x = 0;
    recorder_name(&x, sizeof(x), "x");
    recorder_complete_with(&x, 5);
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma ompx target device_bcast(x) nowait
    }
    expect(x, 5, "a barrier waits for the end");
    recorder_forget();
}

/* depend alone: the thread waits for what the collective depends on, and makes the call that
 * blocks. */
static void undeferred(void) {
    int x = 0;
    int y = 0;
    int seen = -1;
    recorder_name(&x, sizeof(x), "x");
    recorder_name(&y, sizeof(y), "y");
    recorder_complete_with(&x, 9);
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma ompx target device_bcast(x) nowait depend(out : x)
#pragma ompx target device_bcast(y) depend(in : x) depend(out : y)
        seen = *(volatile int *)&x;
    }
    expect(seen, 9, "depend without nowait waits");
    recorder_forget();
}

/* The values of the moment: what changes after the directive does not reach the task. */
static void copied(void) {
    double values[4] = {0};
    int n = 2;
    recorder_name(values, sizeof(values), "values");
    recorder_complete_with(NULL, 0);
#pragma omp parallel num_threads(2) default(none) shared(values, n)
#pragma omp single
    {
        int gate = 0;
#pragma omp task depend(out : gate) shared(gate)
        gate = 1;
#pragma ompx target device_bcast(values[1 : n], recorder_group(n)) device(n) root(n)               \
    depend(inout : gate) nowait
        n = 100;
        {
            int counts[2] = {1, 2};
#pragma ompx target device_scatterv(values[0 : 1], values, recorder_group(2)) counts(counts)       \
    displs(&counts[0]) depend(inout : gate) nowait
            counts[0] = counts[1] = 77;
        }
#pragma omp taskwait
    }
    recorder_forget();
}

/* Outside of any parallel region. */
static void serial(void) {
    int x = 0;
    recorder_name(&x, sizeof(x), "x");
    recorder_complete_with(&x, 4);
#pragma ompx target device_reduce(max : x) nowait root(1)
#pragma omp taskwait
    expect(x, 4, "taskwait without threads");
    recorder_forget();
}

int main(void) {
    chain();
    deferred(2);
    deferred(1);
    at_the_barrier();
    undeferred();
    copied();
    serial();
    return failures != 0;
}
