/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * OpenMP offload that knows nothing of DiOMP. It runs with LLVM's libomptarget and with ours, with
 * the runtime in the process and without, and must not see a difference. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#pragma omp declare target
int global_counter = 5;
static int twice(int x) { return 2 * x; }
#pragma omp end declare target

struct pair {
    int length;
    double *values;
};

static void map_kinds(void) {
    int a[100], b[100], c = 3;
    for (int i = 0; i < 100; ++i) {
        a[i] = i;
        b[i] = -1;
    }
#pragma omp target map(to : a) map(from : b) firstprivate(c)
    for (int i = 0; i < 100; ++i) {
        b[i] = twice(a[i]) + c;
    }
    for (int i = 0; i < 100; ++i) {
        CHECK(b[i] == 2 * i + 3);
    }
#pragma omp target data map(tofrom : a)
    {
#pragma omp target map(alloc : a)
        a[7] = 70;
        CHECK(a[7] == 7);
#pragma omp target update from(a[7 : 1])
        CHECK(a[7] == 70);
        CHECK(omp_target_is_present(a, omp_get_default_device()));
    }
    CHECK(!omp_target_is_present(a, omp_get_default_device()));
}

static void structures(void) {
    struct pair p = {50, malloc(50 * sizeof(double))};
    for (int i = 0; i < 50; ++i) {
        p.values[i] = i;
    }
    double sum = 0;
#pragma omp target map(to : p, p.values[0 : p.length]) map(tofrom : sum)
    for (int i = 0; i < p.length; ++i) {
        sum += p.values[i];
    }
    CHECK(sum == 49 * 25);
    free(p.values);
}

static void reductions_and_tasks(void) {
    enum { LENGTH = 100000 };
    double *x = malloc(LENGTH * sizeof(double));
    double total = 0;
#pragma omp target teams distribute parallel for map(from : x[0 : LENGTH])
    for (int i = 0; i < LENGTH; ++i) {
        x[i] = i;
    }
#pragma omp target teams distribute parallel for map(to : x[0 : LENGTH]) reduction(+ : total)
    for (int i = 0; i < LENGTH; ++i) {
        total += x[i];
    }
    CHECK(total == (double)LENGTH * (LENGTH - 1) / 2);
    int order[3] = {0, 0, 0};
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < 3; ++i) {
#pragma omp target nowait depend(inout : order) map(tofrom : order)
        order[i] = i == 0 ? 1 : order[i - 1] + 1;
    }
    CHECK(order[2] == 3);
    free(x);
}

static void memory_of_devices(void) {
    int const host = omp_get_initial_device();
    for (int device = 0; device < omp_get_num_devices(); ++device) {
        int *p = omp_target_alloc(100 * sizeof(int), device);
        CHECK(p != NULL);
        int values[100], back[100];
        for (int i = 0; i < 100; ++i) {
            values[i] = i * device;
        }
        CHECK(omp_target_memcpy(p, values, sizeof(values), 0, 0, device, host) == 0);
        int bad = 0;
#pragma omp target device(device) is_device_ptr(p) map(tofrom : bad)
        for (int i = 0; i < 100; ++i) {
            bad += p[i] != i * device;
            p[i] += 1;
        }
        CHECK(bad == 0);
        CHECK(omp_target_memcpy(back, p, sizeof(back), 0, 0, host, device) == 0);
        CHECK(back[99] == 99 * device + 1);
        int associated[10];
        CHECK(omp_target_associate_ptr(associated, p, sizeof(associated), 0, device) == 0);
        CHECK(omp_get_mapped_ptr(associated + 2, device) == p + 2);
        CHECK(omp_target_disassociate_ptr(associated, device) == 0);
        omp_target_free(p, device);
    }
}

static void allocator_of_devices(void) {
    int *p = omp_alloc(64 * sizeof(int), llvm_omp_target_device_mem_alloc);
    CHECK(p != NULL);
#pragma omp target is_device_ptr(p)
    p[5] = 6;
    omp_free(p, llvm_omp_target_device_mem_alloc);
}

static void churn(void) {
    /* Sizes that come and go in another order than they came. */
    enum { COUNT = 200 };
    char *blocks[COUNT];
    size_t sizes[COUNT];
    srand(1);
    for (int round = 0; round < 5; ++round) {
        for (int i = 0; i < COUNT; ++i) {
            sizes[i] = (size_t)(rand() % 20000) + 1;
            blocks[i] = malloc(sizes[i]);
            memset(blocks[i], i, sizes[i]);
            size_t const n = sizes[i];
            char *const block = blocks[i];
#pragma omp target enter data map(to : block[0 : n])
        }
        for (int k = 0; k < COUNT; ++k) {
            int const i = (k * 77 + round) % COUNT;
            size_t const n = sizes[i];
            char *const block = blocks[i];
            memset(block, 0, n);
#pragma omp target exit data map(from : block[0 : n])
            CHECK(block[0] == (char)i && block[n - 1] == (char)i);
            free(block);
        }
    }
}

/* Regions also run in handlers of the program's end, whenever these were registered. */
static void after_main(void) {
#pragma omp target
    global_counter += 1;
#pragma omp target update from(global_counter)
    CHECK(global_counter == 7);
}

/* When the images have been unloaded, too. */
__attribute__((destructor)) static void at_the_end(void) {
    if (global_counter == 7) {
        puts("plain offload: ok");
    }
}

int main(void) {
    CHECK(atexit(after_main) == 0); /* before the first region */
    if (omp_get_num_devices() == 0) {
        fprintf(stderr, "no devices\n");
        return 1;
    }
    map_kinds();
    structures();
    reductions_and_tasks();
    memory_of_devices();
    allocator_of_devices();
    churn();
#pragma omp target
    global_counter += 1;
#pragma omp target update from(global_counter)
    CHECK(global_counter == 6);
    return 0;
}
