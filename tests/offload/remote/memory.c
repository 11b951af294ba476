/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * OpenMP's device memory routines between the host, local devices and remote ones. */
#include "exercise.h"

#include <string.h>

static void fill(unsigned char *bytes, size_t n, unsigned seed) {
    for (size_t i = 0; i < n; ++i) {
        bytes[i] = pattern(i, seed);
    }
}

static int holds(const unsigned char *bytes, size_t n, unsigned seed) {
    for (size_t i = 0; i < n; ++i) {
        if (bytes[i] != pattern(i, seed)) {
            return 0;
        }
    }
    return 1;
}

/* Allocations do not overlap and may be freed in any order. */
void case_allocate(void) {
    enum { count = 40 };
    for (int k = 0; k < num_remote; ++k) {
        int const device = remote_device(k);
        unsigned char *parts[count];
        size_t sizes[count];
        unsigned char *const bytes = malloc(1 << 16);
        for (int round = 0; round < 3; ++round) {
            for (int i = 0; i < count; ++i) {
                sizes[i] = 1 + (size_t)(i * i * 37 + round * 411) % 60000;
                parts[i] = omp_target_alloc(sizes[i], device);
                CHECK(parts[i] != NULL);
                fill(bytes, sizes[i], (unsigned)i);
                CHECK(omp_target_memcpy(parts[i], bytes, sizes[i], 0, 0, device, host()) == 0);
            }
            for (int i = 0; i < count; ++i) {
                int const which = (i * 7 + round) % count;
                memset(bytes, 0, sizes[which]);
                CHECK(omp_target_memcpy(bytes, parts[which], sizes[which], 0, 0, host(), device) ==
                      0);
                CHECK(holds(bytes, sizes[which], (unsigned)which));
                omp_target_free(parts[which], device);
            }
        }
        omp_target_free(NULL, device);
        free(bytes);
    }
}

/* There and back, with offsets on both sides. */
void case_copies(void) {
    static const size_t sizes[] = {1, 100, 4096, 5000, 70000, 1 << 20};
    enum { most = (1 << 20) + 64 };
    unsigned char *const bytes = malloc(most), *const back = malloc(most);
    for (int k = 0; k < num_remote; ++k) {
        int const device = remote_device(k);
        unsigned char *const there = omp_target_alloc(most, device);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
            size_t const n = sizes[i];
            fill(bytes, most, 5);
            memset(back, 0, most);
            CHECK(omp_target_memcpy(there, bytes, n, 33, 3, device, host()) == 0);
            CHECK(omp_target_memcpy(back, there, n, 7, 33, host(), device) == 0);
            CHECK(memcmp(back + 7, bytes + 3, n) == 0 && back[6] == 0 && back[n + 7] == 0);
        }
        CHECK(omp_target_memset(there, 0x5a, most, device) == there);
        CHECK(omp_target_memcpy(back, there, most, 0, 0, host(), device) == 0);
        for (size_t i = 0; i < most; ++i) {
            CHECK(back[i] == 0x5a);
        }
        omp_target_free(there, device);
    }
    free(bytes);
    free(back);
}

/* From every device to every other one, the host and local devices among them. */
void case_copies_between(void) {
    static const size_t sizes[] = {16, 5000, 300000};
    int const total = omp_get_num_devices();
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; ++s) {
        size_t const n = sizes[s];
        unsigned char *const bytes = malloc(n), *const back = malloc(n);
        for (int from = 0; from <= total; ++from) {
            for (int to = 0; to <= total; ++to) {
                unsigned const seed = (unsigned)(from * 31 + to);
                unsigned char *const source = omp_target_alloc(n, from);
                unsigned char *const target = omp_target_alloc(n, to);
                CHECK(source != NULL && target != NULL);
                fill(bytes, n, seed);
                memset(back, 0, n);
                CHECK(omp_target_memcpy(source, bytes, n, 0, 0, from, host()) == 0);
                CHECK(omp_target_memcpy(target, source, n, 0, 0, to, from) == 0);
                CHECK(omp_target_memcpy(back, target, n, 0, 0, host(), to) == 0);
                CHECK(holds(back, n, seed));
                omp_target_free(source, from);
                omp_target_free(target, to);
            }
        }
        free(bytes);
        free(back);
    }
}

/* A box out of an array into another one's middle. */
void case_rectangles(void) {
    enum { rows = 40, columns = 50, height = 11, width = 13 };
    size_t const volume[] = {height, width};
    size_t const from[] = {5, 6}, to[] = {20, 30}, back_to[] = {1, 2};
    size_t const dims[] = {rows, columns};
    static double grid[rows][columns], back[rows][columns];
    for (int r = 0; r < rows; ++r) {
        for (int c = 0; c < columns; ++c) {
            grid[r][c] = 100 * r + c;
        }
    }
    for (int k = 0; k < num_remote; ++k) {
        int const device = remote_device(k), other = remote_device(k + 1);
        double *const there = omp_target_alloc(sizeof grid, device);
        double *const beyond = omp_target_alloc(sizeof grid, other);
        memset(back, 0, sizeof back);
        CHECK(omp_target_memcpy_rect(there, grid, sizeof(double), 2, volume, to, from, dims, dims,
                                     device, host()) == 0);
        CHECK(omp_target_memcpy_rect(beyond, there, sizeof(double), 2, volume, from, to, dims, dims,
                                     other, device) == 0);
        CHECK(omp_target_memcpy_rect(back, beyond, sizeof(double), 2, volume, back_to, from, dims,
                                     dims, host(), other) == 0);
        for (int r = 0; r < rows; ++r) {
            for (int c = 0; c < columns; ++c) {
                int const inside = r >= 1 && r < 1 + height && c >= 2 && c < 2 + width;
                CHECK(back[r][c] == (inside ? 100 * (r + 4) + c + 4 : 0));
            }
        }
        omp_target_free(there, device);
        omp_target_free(beyond, other);
    }
}

void case_copies_async(void) {
    enum { n = 20000, steps = 8 };
    unsigned char *const bytes = malloc(n), *const back = malloc(n);
    unsigned char *parts[steps];
    fill(bytes, n, 11);
    for (int i = 0; i < steps; ++i) {
        parts[i] = omp_target_alloc(n, remote_device(i));
    }
    char order[1];
#pragma omp parallel num_threads(2)
#pragma omp single
    {
        omp_depend_t after;
#pragma omp depobj(after) depend(inout : order)
        CHECK(omp_target_memcpy_async(parts[0], bytes, n, 0, 0, remote_device(0), host(), 1,
                                      &after) == 0);
        for (int i = 1; i < steps; ++i) {
            CHECK(omp_target_memcpy_async(parts[i], parts[i - 1], n, 0, 0, remote_device(i),
                                          remote_device(i - 1), 1, &after) == 0);
        }
        CHECK(omp_target_memcpy_async(back, parts[steps - 1], n, 0, 0, host(),
                                      remote_device(steps - 1), 1, &after) == 0);
#pragma omp taskwait
#pragma omp depobj(after) destroy
    }
    CHECK(holds(back, n, 11));
    for (int i = 0; i < steps; ++i) {
        omp_target_free(parts[i], remote_device(i));
    }
    free(bytes);
    free(back);
}

void case_associate(void) {
    enum { n = 1000 };
    for (int k = 0; k < num_remote; ++k) {
        int const device = remote_device(k);
        int data[n];
        int *const there = omp_target_alloc(2 * sizeof data, device);
        CHECK(omp_target_associate_ptr(data, there, sizeof data, sizeof data, device) == 0);
        CHECK(omp_target_is_present(data, device));
        CHECK(omp_get_mapped_ptr(data, device) == there + n);
#pragma omp target map(alloc : data) device(device)
        for (int i = 0; i < n; ++i) {
            data[i] = i + k;
        }
#pragma omp target update from(data) device(device)
        CHECK(data[n - 1] == n - 1 + k);
        CHECK(omp_target_disassociate_ptr(data, device) == 0);
        CHECK(!omp_target_is_present(data, device));
        data[n - 1] = 0;
        CHECK(omp_target_memcpy(data, there, sizeof data, 0, sizeof data, host(), device) == 0);
        CHECK(data[n - 1] == n - 1 + k);
        omp_target_free(there, device);
    }
}

/* Physical memory of the process that runs the device's regions, in MiB. */
static long resident_mib(int device) {
    long mib = -1;
#pragma omp target device(device) map(from : mib)
    {
        FILE *const file = fopen("/proc/self/statm", "r");
        long size = 0;
        long pages = 0;
        if (file && fscanf(file, "%ld %ld", &size, &pages) == 2) {
            mib = pages * 4096 >> 20;
        }
        if (file) {
            fclose(file);
        }
    }
    CHECK(mib >= 0);
    return mib;
}

/* Much memory that is free goes back to the host; what is in use keeps its content. */
void case_idle_pages(void) {
    enum { parts = 10 };
    size_t const part_bytes = (size_t)32 << 20;
    int const device = remote_device(0);
    for (int round = 0; round < 3; ++round) {
        char *all[parts];
        for (int i = 0; i < parts; ++i) {
            char *const one = all[i] = omp_target_alloc(part_bytes, device);
            CHECK(one != NULL);
#pragma omp target device(device) is_device_ptr(one) firstprivate(i, part_bytes)
            for (size_t k = 0; k < part_bytes; k += 4096) {
                one[k] = (char)(i + 1);
            }
        }
        long const full = resident_mib(device);
        CHECK(full >= parts * 32);
        for (int i = 0; i < parts; ++i) {
            if (i != 5) {
                omp_target_free(all[i], device);
            }
        }
        char *const kept = all[5];
        int wrong = 0;
#pragma omp target device(device) is_device_ptr(kept) firstprivate(part_bytes) map(tofrom : wrong)
        for (size_t k = 0; k < part_bytes; k += 4096) {
            wrong += kept[k] != 6;
        }
        CHECK(wrong == 0);
        // What other cases have left idle counts in the first round.
        CHECK(round == 0 || resident_mib(device) <= full - 256);
        omp_target_free(kept, device);
    }
}
