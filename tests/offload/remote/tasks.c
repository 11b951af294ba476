/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Regions that wait for nothing but what they depend on, and threads that use devices at once. */
#include "exercise.h"

#include <string.h>

/* Each step is wrong unless the one before it is over. */
void case_depend_chain(void) {
    enum { n = 3000, steps = 60 };
    for (int k = 0; k < num_remote; ++k) {
        int const device = remote_device(k);
        long data[n];
        for (int i = 0; i < n; ++i) {
            data[i] = i;
        }
#pragma omp parallel num_threads(2)
#pragma omp single
        {
#pragma omp target enter data map(to : data) device(device) depend(inout : data) nowait
            for (int step = 0; step < steps; ++step) {
#pragma omp target device(device) map(alloc : data) firstprivate(step) depend(inout : data) nowait
                for (int i = 0; i < n; ++i) {
                    data[i] = step % 2 ? data[i] + step : data[i] * 3 % 1000003;
                }
            }
#pragma omp target exit data map(from : data) device(device) depend(inout : data) nowait
#pragma omp taskwait
        }
        for (int i = 0; i < n; ++i) {
            long expected = i;
            for (int step = 0; step < steps; ++step) {
                expected = step % 2 ? expected + step : expected * 3 % 1000003;
            }
            CHECK(data[i] == expected);
        }
    }
}

/* The chain goes from device to device, by way of the host's copy. */
void case_depend_across(void) {
    enum { n = 2000, steps = 40 };
    int data[n];
    memset(data, 0, sizeof data);
#pragma omp parallel num_threads(2)
#pragma omp single
    {
        for (int step = 0; step < steps; ++step) {
#pragma omp target device(remote_device(step)) map(tofrom : data) firstprivate(step)               \
    depend(inout : data) nowait
            for (int i = 0; i < n; ++i) {
                data[i] = data[i] == step ? step + 1 : -1;
            }
        }
#pragma omp taskwait
    }
    for (int i = 0; i < n; ++i) {
        CHECK(data[i] == steps);
    }
}

void case_many_tasks(void) {
    enum { tasks = 300, n = 2500 };
    static int results[tasks][n];
#pragma omp parallel num_threads(4)
#pragma omp single
    {
        for (int t = 0; t < tasks; ++t) {
            int *const mine = results[t];
            int const length = t % 3 == 0 ? n : 1 + t % 17; // large and small ones mixed
#pragma omp target device(remote_device(t)) map(from : mine[0 : length]) firstprivate(t, length)   \
    nowait
            for (int i = 0; i < length; ++i) {
                mine[i] = t * i + 1;
            }
        }
#pragma omp taskwait
    }
    for (int t = 0; t < tasks; ++t) {
        int const length = t % 3 == 0 ? n : 1 + t % 17;
        for (int i = 0; i < length; ++i) {
            CHECK(results[t][i] == t * i + 1);
        }
    }
}

/* All threads use all devices, host devices included, at the same time. */
void case_threads(void) {
    enum { threads = 6, rounds = 15, n = 1500 };
    int const total = omp_get_num_devices();
    int wrong = 0;
#pragma omp parallel num_threads(threads) reduction(+ : wrong)
    {
        int const me = omp_get_thread_num();
        double values[n];
        for (int round = 0; round < rounds; ++round) {
            for (int device = 0; device < total; ++device) {
                double sum = 0;
                for (int i = 0; i < n; ++i) {
                    values[i] = me + i;
                }
#pragma omp target device(device) map(tofrom : values, sum) firstprivate(me, round)
                for (int i = 0; i < n; ++i) {
                    sum += values[i];
                    values[i] += round;
                }
                wrong += sum != sum_below(n, me);
                wrong += values[n - 1] != me + n - 1 + round;
            }
        }
    }
    CHECK(wrong == 0);
}

/* Two maps of which a region needs both, entered without waiting, one of them large. */
void case_enter_nowait(void) {
    enum { n = 400000, small = 10 };
    double *const large = malloc(n * sizeof(double));
    double few[small];
    for (int k = 0; k < 2 * num_remote; ++k) {
        int const device = remote_device(k);
        for (int i = 0; i < n; ++i) {
            large[i] = i + k;
        }
        for (int i = 0; i < small; ++i) {
            few[i] = 0;
        }
#pragma omp parallel num_threads(2)
#pragma omp single
        {
#pragma omp target enter data map(to : large[0 : n]) device(device) depend(out : large[0]) nowait
#pragma omp target enter data map(to : few) device(device) depend(out : few[0]) nowait
#pragma omp target device(device) map(alloc : large[0 : n], few) depend(in : large[0])             \
    depend(inout : few[0]) nowait
            for (int i = 0; i < n; ++i) {
                few[i % small] += large[i];
            }
#pragma omp target exit data map(from : few) device(device) depend(inout : few[0]) nowait
#pragma omp target exit data map(delete : large[0 : n]) device(device)                             \
    depend(inout : few[0], large[0]) nowait
#pragma omp taskwait
        }
        double sum = 0;
        for (int i = 0; i < small; ++i) {
            sum += few[i];
        }
        CHECK(sum == sum_below(n, k));
        CHECK(!omp_target_is_present(large, device) && !omp_target_is_present(few, device));
    }
    free(large);
}
