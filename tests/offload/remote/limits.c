/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * What is unusual and allowed all the same. */
#include "exercise.h"

#include <string.h>

void case_no_bytes(void) {
    char data[8] = "before";
    size_t const none = 0;
    for (int k = 0; k < num_remote; ++k) {
        int const device = remote_device(k), other = remote_device(k + 1);
        char *const there = omp_target_alloc(8, device), *const beyond = omp_target_alloc(8, other);
        CHECK(omp_target_memcpy(there, data, 8, 0, 0, device, host()) == 0);
        CHECK(omp_target_memcpy(beyond, data, 8, 0, 0, other, host()) == 0);
        CHECK(omp_target_memcpy(there, data, 0, 8, 8, device, host()) == 0);
        CHECK(omp_target_memcpy(data, there, 0, 8, 8, host(), device) == 0);
        CHECK(omp_target_memcpy(beyond, there, 0, 8, 8, other, device) == 0);
        CHECK(omp_target_memset(there, 1, 0, device) == there);
#pragma omp target enter data map(to : data[0 : none]) device(device)
#pragma omp target update to(data[0 : none]) device(device)
        int ran = 0;
#pragma omp target map(tofrom : data[0 : none]) map(from : ran) device(device)
        ran = 1;
        CHECK(ran);
#pragma omp target update from(data[0 : none]) device(device)
#pragma omp target exit data map(from : data[0 : none]) device(device)
        CHECK(omp_target_memcpy(data, there, 8, 0, 0, host(), device) == 0);
        CHECK(strcmp(data, "before") == 0);
        omp_target_free(there, device);
        omp_target_free(beyond, other);
    }
}

/* Both ways, in small and large parts, as memmove has it. */
void case_overlaps(void) {
    static const size_t sizes[] = {20, 3000, 300000};
    enum { shift = 7, most = 300000 + shift };
    unsigned char *const bytes = malloc(most), *const back = malloc(most);
    for (int k = 0; k < num_remote; ++k) {
        int const device = remote_device(k);
        unsigned char *const there = omp_target_alloc(most, device);
        for (size_t s = 0; s < 2 * (sizeof sizes / sizeof *sizes); ++s) {
            size_t const n = sizes[s / 2], to = s % 2 ? shift : 0, from = shift - to;
            for (size_t i = 0; i < most; ++i) {
                bytes[i] = pattern(i, 9);
            }
            CHECK(omp_target_memcpy(there, bytes, most, 0, 0, device, host()) == 0);
            CHECK(omp_target_memcpy(there, there, n, to, from, device, device) == 0);
            CHECK(omp_target_memcpy(back, there, most, 0, 0, host(), device) == 0);
            memmove(bytes + to, bytes + from, n);
            CHECK(memcmp(back, bytes, most) == 0);
        }
        omp_target_free(there, device);
    }
    free(bytes);
    free(back);
}

/* Nothing happens, on either side. */
void case_unmapped_updates(void) {
    enum { n = 3000 };
    int data[n], mapped[n];
    for (int i = 0; i < n; ++i) {
        data[i] = mapped[i] = i;
    }
    for (int k = 0; k < num_remote; ++k) {
        int const device = remote_device(k), other = remote_device(k + 1);
#pragma omp target update to(data) device(device)
#pragma omp target update from(data) device(device)
        CHECK(!omp_target_is_present(data, device));
#pragma omp target enter data map(to : mapped) device(device)
        if (other != device) {
#pragma omp target update from(mapped) device(other)
            CHECK(!omp_target_is_present(mapped, other));
        }
#pragma omp target device(device)
        mapped[n - 1] = -1;
        CHECK(mapped[n - 1] == n - 1);
#pragma omp target exit data map(release : mapped) device(device)
#pragma omp target update from(mapped) device(device)
        for (int i = 0; i < n; ++i) {
            CHECK(data[i] == i && mapped[i] == i);
        }
    }
}

/* One array, on all devices at once: each has a copy of its own. */
void case_same_array(void) {
    enum { n = 60000, rounds = 10 };
    int *const data = malloc(n * sizeof(int));
    int wrong = 0;
    for (int i = 0; i < n; ++i) {
        data[i] = i;
    }
#pragma omp parallel num_threads(2 * num_remote) reduction(+ : wrong)
    {
        int const me = omp_get_thread_num(), device = remote_device(me);
        for (int round = 0; round < rounds; ++round) {
            long sum = 0;
#pragma omp target device(device) map(to : data[0 : n]) map(tofrom : sum) firstprivate(me)
            for (int i = 0; i < n; ++i) {
                sum += data[i] + me;
            }
            wrong += sum != (n - 1L) * n / 2 + (long)me * n;
        }
    }
    CHECK(wrong == 0);
#pragma omp parallel num_threads(num_remote)
    {
        int const me = omp_get_thread_num(), device = remote_device(me);
#pragma omp target enter data map(to : data[0 : n]) device(device)
#pragma omp target device(device) firstprivate(me)
        for (int i = 0; i < n; ++i) {
            data[i] += me;
        }
#pragma omp barrier
#pragma omp critical
        {
#pragma omp target exit data map(from : data[0 : n]) device(device)
            for (int i = 0; i < n; ++i) {
                wrong += data[i] != i + me;
            }
        }
    }
    CHECK(wrong == 0);
    free(data);
}

/* Hundreds of small regions: chains that go from device to device, and one that takes from all. */
void case_many_chains(void) {
    enum { chains = 10, steps = 40, n = 64 };
    static int data[chains][n];
    int total[1] = {0};
    memset(data, 0, sizeof data);
#pragma omp parallel num_threads(2)
#pragma omp single
    {
        for (int step = 0; step < steps; ++step) {
            for (int c = 0; c < chains; ++c) {
                int *const mine = data[c];
#pragma omp target device(remote_device(step + c)) map(tofrom : mine[0 : n]) firstprivate(step, c) \
    depend(inout : mine[0]) nowait
                for (int i = 0; i < n; ++i) {
                    mine[i] = mine[i] == step * (c + 1) ? mine[i] + c + 1 : -1000000;
                }
            }
        }
        for (int c = 0; c < chains; ++c) {
            int *const mine = data[c];
#pragma omp target device(remote_device(c)) map(to : mine[0 : n]) map(tofrom : total)              \
    depend(in : mine[0]) depend(inout : total) nowait
            total[0] += mine[n - 1];
        }
#pragma omp taskwait
    }
    for (int c = 0; c < chains; ++c) {
        for (int i = 0; i < n; ++i) {
            CHECK(data[c][i] == steps * (c + 1));
        }
    }
    CHECK(total[0] == steps * chains * (chains + 1) / 2);
}
