/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Threads that begin with a region, a wait or a copy, and that turn from device to device. With
 * data that is mapped already libomptarget makes no other call for the device before. */
#include "support/check.h"

#include <omp.h>
#include <stdlib.h>

enum { THREADS = 4, ROUNDS = 30, MAX_DEVICES = 4, LENGTH = 3000 };

static int devices;
static int data[MAX_DEVICES][LENGTH];

static void set(int device, int value) {
    int *const part = data[device];
#pragma omp target teams distribute parallel for device(device) map(alloc : part[0 : LENGTH])      \
    firstprivate(value)
    for (int i = 0; i < LENGTH; ++i) {
        part[i] = value + i;
    }
}

static int holds(int device, int value) {
    for (int i = 0; i < LENGTH; ++i) {
        if (data[device][i] != value + i) {
            return 0;
        }
    }
    return 1;
}

static void from(int device) {
    int *const part = data[device];
#pragma omp target update from(part[0 : LENGTH]) device(device)
}

/* The threads of a parallel region are new ones, or have used other devices last. */
static void first_calls(void) {
#pragma omp parallel num_threads(THREADS)
    {
        int const thread = omp_get_thread_num();
        for (int round = 0; round < ROUNDS; ++round) {
            for (int i = 0; i < devices; ++i) {
                if (i % THREADS == thread) {
                    set(i, 100 * round + thread);
                }
            }
        }
    }
    for (int i = 0; i < devices; ++i) {
        from(i);
        CHECK(holds(i, 100 * (ROUNDS - 1) + i % THREADS));
    }
}

/* One thread, device after device. */
static void in_turn(void) {
    for (int round = 0; round < ROUNDS; ++round) {
        for (int i = 0; i < devices; ++i) {
            set(i, round);
        }
        for (int i = devices - 1; i >= 0; --i) {
            from(i);
            CHECK(holds(i, round));
        }
    }
}

/* Hidden helper threads execute these, one the region, another the question whether it has ended.
 */
static void deferred(void) {
    for (int round = 0; round < ROUNDS; ++round) {
        for (int i = 0; i < devices; ++i) {
            int *const part = data[i];
#pragma omp target teams distribute parallel for device(i) map(alloc : part[0 : LENGTH]) nowait    \
depend(inout : data[i])
            for (int k = 0; k < LENGTH; ++k) {
                part[k] = part[k] + 1;
            }
        }
    }
#pragma omp taskwait
    for (int i = 0; i < devices; ++i) {
        from(i);
    }
}

/* All threads map the same array at once: one copies it, the others wait for that on the device. */
static void the_same_data(void) {
    enum { LARGE = 200000 };
    int *const shared = malloc(sizeof(int) * LARGE);
    for (int round = 0; round < ROUNDS; ++round) {
        for (int i = 0; i < LARGE; ++i) {
            shared[i] = i + round;
        }
        long wrong = 0;
#pragma omp parallel num_threads(THREADS) reduction(+ : wrong)
        {
            int const device = round % devices;
            long mine = 0;
#pragma omp target device(device) map(to : shared[0 : LARGE]) map(tofrom : mine)
            for (int i = 0; i < LARGE; ++i) {
                mine += shared[i] != i + round;
            }
            wrong += mine;
        }
        CHECK(wrong == 0);
    }
    free(shared);
}

int main(void) {
    devices = omp_get_num_devices() < MAX_DEVICES ? omp_get_num_devices() : MAX_DEVICES;
    CHECK(devices > 0);
    for (int i = 0; i < devices; ++i) {
        int *const part = data[i];
#pragma omp target enter data device(i) map(alloc : part[0 : LENGTH])
    }
    first_calls();
    in_turn();
    deferred();
    for (int i = 0; i < devices; ++i) {
        CHECK(holds(i, ROUNDS - 1 + ROUNDS));
    }
    the_same_data();
    for (int i = 0; i < devices; ++i) {
        int *const part = data[i];
#pragma omp target exit data device(i) map(release : part[0 : LENGTH])
    }
    CHECK(ompx_barrier() == 0);
    printf("threads: ok\n");
    return 0;
}
