/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Every directive, read as C by calls.c and as C++ by calls.cpp. calls.expected has the calls. */
#include "recorder.h"

#include <stdbool.h>
#include <stdio.h>

struct part {
    int id;
    double x[6];
};

/* clang-format off */
#define FIRST_HALF doubles[0:5]
/* clang-format on */
#define NUMBER_THREE 3

/* clang-format does not know sections. */
/* clang-format off */
static void whole_and_sections(double *p, int n, ompx_group_t g) {
    double doubles[10];
    float cube[2][3][4];
    int row[4] = {1, 0, 3, 2};
    const long long more[4] = {4, 3, 2, 1};
    unsigned char sizes[4] = {1, 2, 1, 0};
    int scalar = 0;
    struct part one;
    struct part *some = &one;
    (void)scalar;
    recorder_name(p, 20 * sizeof(*p), "memory");
    recorder_name(doubles, sizeof(doubles), "doubles");
    recorder_name(cube, sizeof(cube), "cube");
    recorder_name(row, sizeof(row), "row");
    recorder_name(&scalar, sizeof(scalar), "scalar");
    recorder_name(&one, sizeof(one), "one");
#pragma ompx target device_bcast(doubles, g)
#pragma ompx target device_bcast(doubles)
#pragma ompx target device_bcast(doubles, ompx_group_world) device(1) root(2)
#pragma ompx target device_bcast(doubles, g) root(n) device(OMPX_GROUP_DEVICES)
#pragma ompx target device_bcast(one, g)
#pragma ompx target device_bcast(one.x[2], g)
#pragma ompx target device_bcast(some->x[n:2], g)
#pragma ompx target device_bcast(p[0:n], g)
#pragma ompx target device_bcast((p + 1)[n > 2 ? 1 : 0:n * 2], g)
#pragma ompx target device_bcast(doubles[:n], g)
#pragma ompx target device_bcast(doubles[n:], g)
#pragma ompx target device_bcast(doubles[:], g)
#pragma ompx target device_bcast(cube[1][1:], g)
#pragma ompx target device_bcast(cube[1:1], g)
#pragma ompx target device_bcast(FIRST_HALF, recorder_group(NUMBER_THREE))
#pragma ompx target device_reduce(+ : scalar, g) root(1)
#pragma ompx target device_reduce(max : doubles, g)
#pragma ompx target device_allreduce(min : cube, g)
#pragma ompx target device_allreduce(* : cube[0][1][1:2], g)
#pragma ompx target device_allreduce(avg : cube[1], g) device(0)
#pragma ompx target device_scan(&& : row, g)
#pragma ompx target device_exscan(| : row[1:2], g)
#pragma ompx target device_gather(doubles, p[0:n], g) root(1)
#pragma ompx target device_allgather(doubles[0:6], row[1:2], g)
#pragma ompx target device_scatter(row[:2], doubles, g)
#pragma ompx target device_alltoall(p[0:n], doubles[0:9], g)
#pragma ompx target device_alltoall(p[0:n], doubles)
#pragma ompx target device_reduce_scatter(+ : doubles[2:2], p[0:n], g)
#pragma ompx target device_gatherv(doubles, p[0:n], g) counts(row) displs(&more[1]) root(1)
#pragma ompx target device_allgatherv(cube, p[0:n], g) counts(sizes) device(0)
#pragma ompx target device_scatterv(row[:2], doubles[1:9], g) displs(more) counts(row)
#pragma ompx target device_alltoallv(cube[1:1], one, g) dst_counts(row), src_counts(sizes + 1) src_displs(more)
#pragma ompx barrier
#pragma ompx barrier group(g)
#pragma ompx fence
#pragma ompx fence group(g)
    if (n == 0)
#pragma ompx barrier
    recorder_say("after the barrier that does not happen");
    recorder_forget();
}

/* clang-format on */
#define EACH_TYPE(type)                                                                            \
    do {                                                                                           \
        type value;                                                                                \
        recorder_say(#type);                                                                       \
        _Pragma("ompx target device_allreduce(|| : value)")                                        \
    } while (0)

static void types(void) {
    EACH_TYPE(bool);
    EACH_TYPE(char);
    EACH_TYPE(signed char);
    EACH_TYPE(unsigned char);
    EACH_TYPE(short);
    EACH_TYPE(unsigned short);
    EACH_TYPE(int);
    EACH_TYPE(unsigned);
    EACH_TYPE(long);
    EACH_TYPE(unsigned long);
    EACH_TYPE(long long);
    EACH_TYPE(unsigned long long);
    EACH_TYPE(_Float16);
    EACH_TYPE(__bf16);
    EACH_TYPE(float);
    EACH_TYPE(double);
    EACH_TYPE(long double);
    EACH_TYPE(volatile int);
    __extension__ float _Complex small[2];
    __extension__ double _Complex large[3];
    recorder_say("complex");
#pragma ompx target device_allreduce(+ : small)
#pragma ompx target device_allreduce(* : large[1 : 2])
}

static double *buffer_once(double *p) {
    (void)recorder_once(0);
    return p;
}

/* clang-format off */
static void evaluated_once(double *p, int n) {
#pragma ompx target device_bcast(buffer_once(p)[recorder_once(1):recorder_once(n)],                \
                                 recorder_group(recorder_once(3))) device(recorder_once(4))        \
    root(recorder_once(5))
    printf("%d evaluations\n", recorder_evaluations());
#pragma ompx target device_alltoall(p[recorder_once(0):recorder_once(1)],                          \
                                    p[recorder_once(0):recorder_once(8)],                          \
                                    recorder_group(recorder_once(4)))
    printf("%d evaluations\n", recorder_evaluations());
    short const counts[4] = {0, 1, 2, 3};
#pragma ompx target device_gatherv(p[0:10], p[0:recorder_once(8)], recorder_group(4))              \
    counts(counts + recorder_once(0)) displs(&counts[recorder_once(0)])
    printf("%d evaluations\n", recorder_evaluations());
}

/* clang-format on */
static int run_calls(void) {
    static double memory[20];
    whole_and_sections(memory, 4, recorder_group(3));
    types();
    recorder_name(memory, sizeof(memory), "memory");
    evaluated_once(memory, 2);
    return 0;
}
