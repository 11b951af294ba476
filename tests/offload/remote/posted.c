/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * usage: posted order|early|crash|time FIRST COUNT    regions that OpenMP does not wait for, on
 * COUNT devices from number FIRST on. They call nothing that could be seen from outside. */
#include "exercise.h"

#include <string.h>

int first_remote = 0;
int num_remote = 0;

enum { few = 200, many = 40000, rounds = 200 };

static void chain(int device) {
    long data[few];
    memset(data, 0, sizeof data);
#pragma omp target enter data map(to : data) device(device)
#pragma omp parallel num_threads(2)
#pragma omp single
    for (int round = 0; round < rounds; ++round) {
#pragma omp target device(device) map(alloc : data) firstprivate(round) depend(inout : data) nowait
        for (int i = 0; i < few; ++i) {
            data[i] = round % 2 ? data[i] * 3 % 1000003 : data[i] + i + round;
        }
    }
#pragma omp target exit data map(from : data) device(device)
    for (int i = 0; i < few; ++i) {
        long expected = 0;
        for (int round = 0; round < rounds; ++round) {
            expected = round % 2 ? expected * 3 % 1000003 : expected + i + round;
        }
        CHECK(data[i] == expected);
    }
}

/* What a region has mapped is given back when it is posted, and the next one gets it. */
static void memory_that_is_used_again(int device) {
    long sums[few];
    memset(sums, 0, sizeof sums);
#pragma omp target enter data map(to : sums) device(device)
#pragma omp parallel num_threads(4)
#pragma omp single
    for (int round = 0; round < rounds; ++round) {
        int given[few];
        for (int i = 0; i < few; ++i) {
            given[i] = round * i;
        }
#pragma omp target device(device) map(to : given) map(alloc : sums) depend(inout : sums) nowait
        for (int i = 0; i < few; ++i) {
            sums[i] += given[i];
        }
#pragma omp taskwait
    }
#pragma omp target exit data map(from : sums) device(device)
    for (int i = 0; i < few; ++i) {
        CHECK(sums[i] == (long)i * rounds * (rounds - 1) / 2);
    }
}

/* Large transfers go past the messages that carry regions. */
static void large_transfers(int device) {
    int *const data = calloc(many, sizeof(int));
#pragma omp target enter data map(to : data[0 : many]) device(device)
    for (int round = 0; round < rounds / 10; ++round) {
#pragma omp parallel num_threads(2)
#pragma omp single
#pragma omp target device(device) map(alloc : data[0 : many]) firstprivate(round) nowait
        for (int i = 0; i < many; ++i) {
            data[i] += round;
        }
        if (round % 2) {
#pragma omp target update from(data[0 : many]) device(device)
            for (int i = 0; i < many; ++i) {
                CHECK(data[i] == 2 * round);
            }
        } else {
            for (int i = 0; i < many; ++i) {
                data[i] = round + 1;
            }
#pragma omp target update to(data[0 : many]) device(device)
        }
    }
#pragma omp target exit data map(delete : data[0 : many]) device(device)
    free(data);
}

static void copies_between(int device, int other) {
    int *const here = omp_target_alloc(many * sizeof(int), device);
    int *const there = omp_target_alloc(many * sizeof(int), other);
    int *const data = calloc(many, sizeof(int));
    omp_target_memcpy(there, data, many * sizeof(int), 0, 0, other, host());
    for (int round = 1; round < rounds / 10; ++round) {
#pragma omp parallel num_threads(2)
#pragma omp single
        {
#pragma omp target device(device) is_device_ptr(here) firstprivate(round) nowait
            for (int i = 0; i < many; ++i) {
                here[i] = round * i;
            }
#pragma omp target device(other) is_device_ptr(there) nowait
            for (int i = 0; i < many; ++i) {
                there[i] = -1;
            }
        }
        omp_target_memcpy(there, here, many * sizeof(int), 0, 0, other, device);
        omp_target_memcpy(data, there, many * sizeof(int), 0, 0, host(), other);
        for (int i = 0; i < many; ++i) {
            CHECK(data[i] == round * i);
        }
    }
    omp_target_free(here, device);
    omp_target_free(there, other);
    free(data);
}

/* Threads that depend on nothing of each other, in one counter. */
static void threads_at_once(int device) {
    long count[1] = {0};
#pragma omp target enter data map(to : count) device(device)
#pragma omp parallel num_threads(6)
    for (int round = 0; round < rounds; ++round) {
#pragma omp target device(device) map(alloc : count) nowait
#pragma omp atomic
        count[0] += 1;
    }
#pragma omp target exit data map(from : count) device(device)
    CHECK(count[0] == 6L * rounds);
}

/* Takes `seconds`, then counts; or crashes. */
static void post(int device, double seconds, int crash, long count[1]) {
#pragma omp parallel num_threads(2)
#pragma omp single
#pragma omp target device(device) map(alloc : count[0 : 1]) firstprivate(seconds, crash) nowait
    {
        double const end = omp_get_wtime() + seconds;
        while (omp_get_wtime() < end) {
        }
        if (crash) {
            volatile int *volatile nothing = NULL;
            *nothing = 1;
        }
        count[0] += 1;
    }
}

/* The first two tell how short it is, the first one of all also how long the start took. */
static void make_known(int device, long count[1]) {
    for (int i = 0; i < 3; ++i) {
        post(device, 0, 0, count);
    }
}

/* Prints how long a region of 0.3 s took its task, two times, and what came of it. */
static void early(int device) {
    long count[1] = {0};
#pragma omp target enter data map(to : count) device(device)
    make_known(device, count);
    for (int i = 0; i < 2; ++i) {
        double const begin = omp_get_wtime();
        post(device, 0.3, 0, count);
        double const posted = omp_get_wtime() - begin;
#pragma omp target update from(count) device(device)
        printf("%.3f %.3f %ld\n", posted, omp_get_wtime() - begin, count[0]);
    }
#pragma omp target exit data map(delete : count) device(device)
}

static void crash(int device) {
    long count[1] = {0};
#pragma omp target enter data map(to : count) device(device)
    make_known(device, count);
    post(device, 0.3, 1, count);
    printf("went on\n");
}

/* Prints how many seconds `rounds` regions take that depend on each other. */
static void time_chain(int device) {
    long count[1] = {0};
#pragma omp target enter data map(to : count) device(device)
    make_known(device, count);
    double const begin = omp_get_wtime();
#pragma omp parallel num_threads(2)
#pragma omp single
    for (int round = 0; round < rounds; ++round) {
#pragma omp target device(device) map(alloc : count) depend(inout : count) nowait
        count[0] += 1;
    }
#pragma omp target exit data map(from : count) device(device)
    printf("%.3f %ld\n", omp_get_wtime() - begin, count[0]);
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: posted order|early|crash|time FIRST COUNT\n");
        return 2;
    }
    first_remote = atoi(argv[2]);
    num_remote = atoi(argv[3]);
    if (strcmp(argv[1], "early") == 0) {
        early(first_remote);
    } else if (strcmp(argv[1], "crash") == 0) {
        crash(first_remote);
    } else if (strcmp(argv[1], "time") == 0) {
        time_chain(first_remote);
    } else {
        for (int k = 0; k < num_remote; ++k) {
            int const device = remote_device(k);
            chain(device);
            memory_that_is_used_again(device);
            large_transfers(device);
            copies_between(device, remote_device(k + 1));
            threads_at_once(device);
        }
        printf("in order\n");
    }
    return 0;
}
