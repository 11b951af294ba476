/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * What happens inside a region. */
#include "exercise.h"

#include <string.h>

void case_reductions(void) {
    enum { n = 10000 };
    int data[n];
    for (int i = 0; i < n; ++i) {
        data[i] = i % 101;
    }
    for (int k = 0; k < num_remote; ++k) {
        long sum = 5;
        int most = -1, bits = 0;
        double product = 1;
#pragma omp target teams distribute parallel for device(remote_device(k)) map(to : data)           \
    reduction(+ : sum) reduction(max : most) reduction(| : bits)
        for (int i = 0; i < n; ++i) {
            sum += data[i];
            most = data[i] > most ? data[i] : most;
            bits |= data[i];
        }
#pragma omp target parallel for device(remote_device(k)) reduction(* : product)
        for (int i = 1; i <= 10; ++i) {
            product *= i;
        }
        long expected = 5;
        for (int i = 0; i < n; ++i) {
            expected += data[i];
        }
        CHECK(sum == expected && most == 100 && bits == 127 && product == 3628800);
    }
}

void case_loops(void) {
    enum { a = 13, b = 17, c = 19 };
    static int cube[a][b][c];
    for (int k = 0; k < num_remote; ++k) {
        memset(cube, 0, sizeof cube);
#pragma omp target teams distribute parallel for collapse(3) device(remote_device(k))              \
    map(tofrom : cube) num_teams(2) thread_limit(2)
        for (int x = 0; x < a; ++x) {
            for (int y = 0; y < b; ++y) {
                for (int z = 0; z < c; ++z) {
                    cube[x][y][z] += 10000 * x + 100 * y + z;
                }
            }
        }
        for (int x = 0; x < a; ++x) {
            for (int y = 0; y < b; ++y) {
                for (int z = 0; z < c; ++z) {
                    CHECK(cube[x][y][z] == 10000 * x + 100 * y + z);
                }
            }
        }
        float line[999];
#pragma omp target parallel for simd schedule(dynamic, 7) device(remote_device(k)) map(from : line)
        for (int i = 0; i < 999; ++i) {
            line[i] = (float)i * 0.5F;
        }
        CHECK(line[998] == 499 && line[0] == 0);
    }
}

/* Parallelism in parallelism, tasks, locks, and atomics, all on the device. */
void case_nested(void) {
    for (int k = 0; k < num_remote; ++k) {
        int visits = 0, leaves = 0, threads = 0;
#pragma omp target device(remote_device(k)) map(tofrom : visits, leaves, threads)
        {
#pragma omp parallel num_threads(3)
            {
#pragma omp atomic
                ++visits;
#pragma omp single
                {
                    threads = omp_get_num_threads();
                    for (int i = 0; i < 20; ++i) {
#pragma omp task shared(leaves)
                        {
#pragma omp parallel num_threads(2)
                            {
#pragma omp critical
                                ++leaves;
                            }
                        }
                    }
                }
            }
        }
        CHECK(threads >= 1 && visits == threads && leaves >= 20 && leaves <= 40);
    }
}

/* OpenMP's routines can be called there. What they say of devices is that of the other process. */
void case_routines(void) {
    for (int k = 0; k < num_remote; ++k) {
        int level = -1, most = -1, same = 0, devices = -1, memory = 0, number = -1;
        double passed = -1;
#pragma omp target device(remote_device(k)) map(from : level, most, same, devices, memory, passed) \
    map(from : number)
        {
            double const begin = omp_get_wtime();
            level = omp_get_level();
            most = omp_get_max_threads();
            devices = omp_get_num_devices();
            number = omp_get_device_num();
            same = omp_get_initial_device() == number || omp_get_default_device() >= 0;
            void *const local = omp_target_alloc(100, omp_get_initial_device());
            memory = local != NULL;
            omp_target_free(local, omp_get_initial_device());
            passed = omp_get_wtime() - begin;
        }
        CHECK(level == 0 && most > 0 && devices >= 0 && number >= 0 && same);
        CHECK(memory && passed >= 0);
    }
}

/* More arguments than registers pass. */
void case_many_arguments(void) {
    int v[24];
    for (int i = 0; i < 24; ++i) {
        v[i] = 1 << i;
    }
    int a0 = v[0], a1 = v[1], a2 = v[2], a3 = v[3], a4 = v[4], a5 = v[5], a6 = v[6], a7 = v[7];
    double d0 = 0.5, d1 = 1.5, d2 = 2.5, d3 = 3.5, d4 = 4.5, d5 = 5.5, d6 = 6.5, d7 = 7.5;
    char c0 = 1, c1 = 2, c2 = 3, c3 = 4;
    long sum = 0;
    double real = 0;
#pragma omp target device(remote_device(0)) map(tofrom : sum, real)                                \
    firstprivate(a0, a1, a2, a3, a4, a5, a6, a7, d0, d1, d2, d3, d4, d5, d6, d7, c0, c1, c2, c3)
    {
        sum = a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7 + 1000 * (c0 + c1 + c2 + c3);
        real = d0 + d1 + d2 + d3 + d4 + d5 + d6 + d7;
    }
    CHECK(sum == 255 + 10000 && real == 32);
}

/* What a region leaves in the device's process the next one finds. */
void case_state(void) {
    for (int k = 0; k < num_remote; ++k) {
        char *kept = NULL;
#pragma omp target device(remote_device(k)) map(tofrom : kept)
        {
            kept = malloc(100);
            strcpy(kept, "kept");
        }
        int same = 0;
#pragma omp target device(remote_device(k)) map(from : same) is_device_ptr(kept)
        {
            same = strcmp(kept, "kept") == 0;
            free(kept);
        }
        CHECK(same);
    }
}

/* For print_test: lines with their numbers, of host and devices in turn. */
void case_print(void) {
    enum { lines = 20000, length = 52 };
    for (int k = 0; k < num_remote; ++k) {
        printf("before %d\n", k);
#pragma omp target device(remote_device(k)) firstprivate(k)
        {
            for (int i = 0; i < lines; ++i) {
                printf("line %d of device %d %0*d\n", i, k, length - 30, i);
            }
            dprintf(2, "errors of device %d\n", k); // `stderr` would be the host's pointer
        }
        printf("after %d\n", k);
    }
#pragma omp target device(remote_device(0))
    printf("without an end");
    printf(" and with\n");
}
