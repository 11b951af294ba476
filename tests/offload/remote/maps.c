/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * What map, update and declare target move. */
#include "exercise.h"

#include <string.h>
#include <unistd.h>

enum { large_global = 300000 };

#pragma omp declare target
int small_global = 5;
double table[large_global];
static const char *greeting = "hello";
static int twice(int x) { return 2 * x; }
#pragma omp end declare target

/* Each device is another process, and none is this one. */
void case_devices(void) {
    int seen[64];
    CHECK(num_remote <= 64);
    for (int i = 0; i < num_remote; ++i) {
        int process = 0;
#pragma omp target device(remote_device(i)) map(from : process)
        process = getpid();
        CHECK(process != 0 && process != getpid());
        for (int k = 0; k < i; ++k) {
            CHECK(seen[k] != process);
        }
        seen[i] = process;
    }
    for (int i = 0; i < first_remote; ++i) {
        int process = 0;
#pragma omp target device(i) map(from : process)
        process = getpid();
        CHECK(process == getpid());
    }
}

static void map_size(int device, size_t n) {
    unsigned char *in = malloc(n + 1), *out = malloc(n + 1), *both = malloc(n + 1);
    for (size_t i = 0; i < n; ++i) {
        in[i] = pattern(i, 1);
        both[i] = pattern(i, 2);
    }
    memset(out, 0, n);
    out[n] = both[n] = 42; // what lies behind is not touched
    size_t wrong = 0;
#pragma omp target device(device) map(to : in[0 : n]) map(from : out[0 : n])                       \
    map(tofrom : both[0 : n], wrong)
    {
        for (size_t i = 0; i < n; ++i) {
            wrong += in[i] != pattern(i, 1) || both[i] != pattern(i, 2);
            out[i] = pattern(i, 3);
            both[i] = pattern(i, 4);
            in[i] = 0; // stays there
        }
    }
    CHECK(wrong == 0);
    for (size_t i = 0; i < n; ++i) {
        CHECK(in[i] == pattern(i, 1) && out[i] == pattern(i, 3) && both[i] == pattern(i, 4));
    }
    CHECK(out[n] == 42 && both[n] == 42);
    free(in);
    free(out);
    free(both);
}

void case_map_sizes(void) {
    static const size_t sizes[] = {0,     1,     2,     7,      8,       255,          1024,
                                   4095,  4096,  4097,  8191,   8192,    8193,         16383,
                                   65535, 65536, 65537, 100000, 1 << 20, (1 << 20) + 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
        for (int k = 0; k < num_remote; ++k) {
            map_size(remote_device(k), sizes[i]);
        }
    }
}

void case_map_large(void) { map_size(remote_device(0), (size_t)64 << 20); }

struct inner {
    int n;
    double *values;
};
struct outer {
    char tag;
    struct inner inner;
    int *numbers;
    struct outer *next;
    long sum;
};

void case_map_structs(void) {
    for (int k = 0; k < num_remote; ++k) {
        double values[600];
        int numbers[3000];
        struct outer second = {.tag = 'b', .sum = 7};
        struct outer first = {'a', {600, values}, numbers, &second, 0};
        for (int i = 0; i < 600; ++i) {
            values[i] = i;
        }
        for (int i = 0; i < 3000; ++i) {
            numbers[i] = -i;
        }
#pragma omp target device(remote_device(k)) map(tofrom : first)                                    \
    map(tofrom : first.inner.values[0 : 600], first.numbers[0 : 3000], first.next[0 : 1])
        {
            for (int i = 0; i < first.inner.n; ++i) {
                first.inner.values[i] *= 2;
            }
            for (int i = 0; i < 3000; ++i) {
                first.sum += first.numbers[i]--;
            }
            first.next->sum += first.tag == 'a' ? 100 : 0;
        }
        CHECK(first.inner.values == values && first.numbers == numbers && first.next == &second);
        CHECK(first.sum == -2999L * 3000 / 2 && second.sum == 107);
        CHECK(values[599] == 1198 && numbers[2999] == -3000 && numbers[0] == -1);
    }
}

/* Pointers on the device to other maps there. */
void case_map_list(void) {
    enum { rows = 20, columns = 700 };
    double *matrix[rows];
    for (int r = 0; r < rows; ++r) {
        matrix[r] = malloc(columns * sizeof(double));
        for (int c = 0; c < columns; ++c) {
            matrix[r][c] = r + c;
        }
    }
    int const device = remote_device(num_remote - 1);
#pragma omp target enter data map(to : matrix) device(device)
    for (int r = 0; r < rows; ++r) {
#pragma omp target enter data map(to : matrix[r][0 : columns]) device(device)
    }
#pragma omp target device(device) map(alloc : matrix)
    for (int r = 0; r < rows; ++r) {
        for (int c = 0; c < columns; ++c) {
            matrix[r][c] += 1000 * r;
        }
    }
    for (int r = 0; r < rows; ++r) {
#pragma omp target exit data map(from : matrix[r][0 : columns]) device(device)
    }
#pragma omp target exit data map(delete : matrix) device(device)
    for (int r = 0; r < rows; ++r) {
        CHECK(matrix[r][0] == 1001 * r && matrix[r][columns - 1] == 1001 * r + columns - 1);
        free(matrix[r]);
    }
}

/* A device image has its own, on each device. */
void case_globals(void) {
    for (int k = 0; k < num_remote; ++k) {
        int const device = remote_device(k);
        int got = 0, length = 0;
        double sum = 0;
        small_global = 50 + k;
        for (int i = 0; i < large_global; ++i) {
            table[i] = i + k;
        }
#pragma omp target update to(small_global, table) device(device)
#pragma omp target device(device) map(from : got, length) map(tofrom : sum)
        {
            got = twice(small_global);
            length = (int)strlen(greeting);
            for (int i = 0; i < large_global; ++i) {
                sum += table[i];
                table[i] = -i;
            }
            small_global = 9;
        }
        CHECK(got == 2 * (50 + k) && length == 5 && small_global == 50 + k);
        CHECK(sum == sum_below(large_global, k));
#pragma omp target update from(small_global, table) device(device)
        CHECK(small_global == 9);
        for (int i = 0; i < large_global; ++i) {
            CHECK(table[i] == -i);
        }
#pragma omp target update from(table[1000 : 3]) device(device)
        CHECK(table[1002] == -1002);
    }
    // What one device has written the others do not see.
    small_global = 1;
#pragma omp target update to(small_global) device(remote_device(0))
    for (int k = 1; k < num_remote; ++k) {
        int got = 0;
#pragma omp target device(remote_device(k)) map(from : got)
        got = small_global;
        CHECK(got == 9);
    }
}

/* From the variable of one device to that of the next one, and to memory of its own and back. */
void case_copies_globals(void) {
    enum { most = 8 };
    double *there[most];
    CHECK(num_remote <= most);
    for (int k = 0; k < num_remote; ++k) {
        int const device = remote_device(k);
#pragma omp target device(device) firstprivate(k)
        for (int i = 0; i < large_global; ++i) {
            table[i] = k == 0 ? i : 0;
        }
        there[k] = omp_get_mapped_ptr(table, device);
        CHECK(there[k] != NULL && there[k] != table);
    }
    for (int k = 0; k < num_remote; ++k) {
        int const from = remote_device(k), to = remote_device(k + 1);
        double *const spare = omp_target_alloc(sizeof table, to);
        CHECK(omp_target_memcpy(spare, there[k], sizeof table, 0, 0, to, from) == 0);
        CHECK(omp_target_memset(there[(k + 1) % num_remote], 0, sizeof table, to) != NULL);
        CHECK(omp_target_memcpy(there[(k + 1) % num_remote], spare, sizeof table - 8, 8, 0, to,
                                to) == 0);
        CHECK(omp_target_memcpy(spare, there[(k + 1) % num_remote], sizeof table - 8, 0, 8, to,
                                to) == 0);
        CHECK(omp_target_memcpy(there[(k + 1) % num_remote], spare, sizeof table, 0, 0, to, to) ==
              0);
        omp_target_free(spare, to);
        double sum = 0;
#pragma omp target device(to) map(tofrom : sum)
        for (int i = 0; i < large_global; ++i) {
            sum += table[i];
        }
        CHECK(sum == sum_below(large_global, 0));
    }
    for (int k = 1; k < num_remote; ++k) {
        int const from = remote_device(k - 1), to = remote_device(k);
#pragma omp target device(to)
        table[large_global - 1] = -1;
        CHECK(omp_target_memcpy(there[k], there[k - 1], sizeof table, 0, 0, to, from) == 0);
#pragma omp target update from(table) device(to)
        for (int i = 0; i < large_global; ++i) {
            CHECK(table[i] == i);
        }
    }
}

void case_update(void) {
    enum { n = 200000 };
    int *data = malloc(n * sizeof(int));
    for (int k = 0; k < num_remote; ++k) {
        int const device = remote_device(k);
        memset(data, 0, n * sizeof(int));
#pragma omp target data map(to : data[0 : n]) device(device)
        {
            for (int round = 1; round <= 5; ++round) {
                data[round] = round;      // small
                data[n / 2] = 10 * round; // within a large part
                data[n - 1] = 100 * round;
#pragma omp target update to(data[round : 1]) device(device)
#pragma omp target update to(data[n / 2 - 5000 : 10000]) device(device)
#pragma omp target update to(data[n - 1 : 1]) device(device)
                long sum = 0;
#pragma omp target device(device) map(tofrom : sum)
                {
                    for (int i = 0; i < n; ++i) {
                        sum += data[i];
                    }
                    data[7] = -round;
                }
                CHECK(sum == round * (round + 1) / 2 + 110L * round - (round - 1));
                CHECK(data[7] == 1 - round);
#pragma omp target update from(data[7 : 1]) device(device)
                CHECK(data[7] == -round);
            }
#pragma omp target device(device)
            for (int i = 0; i < n; ++i) {
                data[i] = i;
            }
#pragma omp target update from(data[0 : n]) device(device)
            for (int i = 0; i < n; ++i) {
                CHECK(data[i] == i);
            }
        }
    }
    free(data);
}

void case_reference_counts(void) {
    int data[2000] = {1};
    for (int k = 0; k < num_remote; ++k) {
        int const device = remote_device(k);
        data[0] = 1;
#pragma omp target enter data map(to : data) device(device)
#pragma omp target enter data map(to : data) device(device)
        CHECK(omp_target_is_present(data, device));
        CHECK(k == 0 || !omp_target_is_present(data, remote_device(k - 1)));
        CHECK(omp_get_mapped_ptr(data, device) != NULL);
        data[0] = 2;
        int seen = 0;
#pragma omp target map(tofrom : data) map(from : seen) device(device)
        seen = data[0]++;
        CHECK(seen == 1 && data[0] == 2); // was there: nothing moves
#pragma omp target map(always, tofrom : data) map(from : seen) device(device)
        seen = data[0]++;
        CHECK(seen == 2 && data[0] == 3);
#pragma omp target exit data map(from : data) device(device)
        CHECK(omp_target_is_present(data, device));
#pragma omp target exit data map(from : data) device(device)
        CHECK(!omp_target_is_present(data, device));
#pragma omp target enter data map(alloc : data) device(device)
#pragma omp target enter data map(alloc : data) device(device)
#pragma omp target exit data map(delete : data) device(device)
        CHECK(!omp_target_is_present(data, device) && omp_get_mapped_ptr(data, device) == NULL);
    }
}

void case_device_pointers(void) {
    enum { n = 5000 };
    int data[n];
    for (int k = 0; k < num_remote; ++k) {
        int const device = remote_device(k);
        int *const raw = omp_target_alloc(n * sizeof(int), device);
        CHECK(raw != NULL);
#pragma omp target is_device_ptr(raw) device(device)
        for (int i = 0; i < n; ++i) {
            raw[i] = 3 * i;
        }
        int *found = NULL;
#pragma omp target data map(alloc : data) device(device)
        {
#pragma omp target data use_device_addr(data) device(device)
            found = data;
            CHECK(found != NULL && found == omp_get_mapped_ptr(data, device));
            CHECK(omp_target_memcpy(found, raw, sizeof data, 0, 0, device, device) == 0);
#pragma omp target update from(data) device(device)
        }
        CHECK(found != data && data[n - 1] == 3 * (n - 1) && data[1] == 3);
        omp_target_free(raw, device);
    }
}
