/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Device memory in the address space: every direction of ompx_target_put and ompx_target_get, by
 * device and by mapped addresses, on several devices. Runs with DIOMP_ERRORS=return. */
#include "support/check.h"

#include <omp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH = 3000 };

static int me, ranks, next, previous, host;
static int64_t table[LENGTH];

static int64_t value(int rank, int i) { return (int64_t)rank * 1000000 + i; }

static void meet(void) {
    CHECK(ompx_fence() == 0);
    CHECK(ompx_barrier() == 0);
}

/* Elements of a device array that are not value(rank, i). */
static int wrong_on_device(const int64_t *array, int device, int rank) {
    int wrong = 0;
#pragma omp target device(device) map(tofrom : wrong) map(to : array[0 : LENGTH])
    for (int i = 0; i < LENGTH; ++i) {
        wrong += array[i] != value(rank, i);
    }
    return wrong;
}

static void fill_on_device(int64_t *array, int device, int rank) {
#pragma omp target device(device) map(to : array[0 : LENGTH])
    for (int i = 0; i < LENGTH; ++i) {
        array[i] = value(rank, i);
    }
}

static void mapped_to_mapped(int from_device, int to_device) {
    int64_t *source = malloc(sizeof(int64_t) * LENGTH);
    int64_t *target = malloc(sizeof(int64_t) * LENGTH);
    memset(source, 0, sizeof(int64_t) * LENGTH);
    memset(target, 0, sizeof(int64_t) * LENGTH);
#pragma omp target enter data device(from_device) map(to : source[0 : LENGTH])
#pragma omp target enter data device(to_device) map(to : target[0 : LENGTH])
    fill_on_device(source, from_device, me);
    meet();
    CHECK(ompx_target_put(next, target, to_device, source, from_device, sizeof(int64_t) * LENGTH) ==
          0);
    meet();
    CHECK(wrong_on_device(target, to_device, previous) == 0);
    CHECK(target[1] == 0); /* the host's copy is another */
    meet();
    /* Back: what the next rank has now is ours. */
    CHECK(ompx_target_get(source, from_device, next, target, to_device, sizeof(int64_t) * LENGTH) ==
          0);
    CHECK(wrong_on_device(source, from_device, me) == 0);
    /* A part in the middle, by pointers inside the mapped section. */
    int64_t const marker = -7 - me;
    meet();
    CHECK(ompx_target_put(next, target + 100, to_device, &marker, host, sizeof(marker)) == 0);
    meet();
    int64_t seen = 0;
    CHECK(ompx_target_get(&seen, host, me, target + 100, to_device, sizeof(seen)) == 0);
    CHECK(seen == -7 - previous);
    meet();
#pragma omp target exit data device(from_device) map(release : source[0 : LENGTH])
#pragma omp target exit data device(to_device) map(release : target[0 : LENGTH])
    free(source);
    free(target);
}

static void by_device_address(int device) {
    int64_t *array = omp_target_alloc(sizeof(int64_t) * LENGTH, device);
    CHECK(array != NULL);
    int64_t *host_copy = malloc(sizeof(int64_t) * LENGTH);
    for (int i = 0; i < LENGTH; ++i) {
        host_copy[i] = value(me, i);
    }
    meet();
    CHECK(ompx_target_put(next, array, device, host_copy, host, sizeof(int64_t) * LENGTH) == 0);
    meet();
    memset(host_copy, 0, sizeof(int64_t) * LENGTH);
    CHECK(ompx_target_get(host_copy, host, me, array, device, sizeof(int64_t) * LENGTH) == 0);
    for (int i = 0; i < LENGTH; ++i) {
        CHECK(host_copy[i] == value(previous, i));
    }
    /* -1 is the host too (OpenMP 5.2, omp_initial_device). */
    CHECK(ompx_target_get(host_copy, -1, next, array + 5, device, sizeof(int64_t)) == 0);
    CHECK(host_copy[0] == value(me, 5));
    meet();
    omp_target_free(array, device);
    free(host_copy);
}

static void between_host_and_device(void) {
    /* Symmetric host memory of the other rank, device memory of this one. */
    int64_t *shared = omp_alloc(sizeof(int64_t) * LENGTH, ompx_symmetric_mem_alloc);
    CHECK(shared != NULL);
#pragma omp target enter data map(to : table)
    fill_on_device(table, omp_get_default_device(), me);
    meet();
    CHECK(ompx_target_put(next, shared, host, table, omp_get_default_device(), sizeof(table)) == 0);
    meet();
    for (int i = 0; i < LENGTH; ++i) {
        CHECK(shared[i] == value(previous, i));
        shared[i] = value(me + 50, i);
    }
    meet();
    CHECK(ompx_target_get(table, omp_get_default_device(), previous, shared, host, sizeof(table)) ==
          0);
    CHECK(wrong_on_device(table, omp_get_default_device(), previous + 50) == 0);
    meet();
#pragma omp target exit data map(release : table)
    omp_free(shared, ompx_symmetric_mem_alloc);
}

static void allocators(int device) {
    ompx_segment_info_t before;
    CHECK(ompx_target_segment_info(device, &before) == 0);
    size_t const nbytes = sizeof(int64_t) * LENGTH;
    int64_t *symmetric = ompx_target_alloc(nbytes, device, ompx_symmetric_mem_alloc);
    CHECK(symmetric != NULL && (uintptr_t)symmetric % 64 == 0);
    size_t offset = (size_t)((char *)symmetric - (char *)before.base);
    size_t lowest = 0;
    CHECK(ompx_allreduce(&lowest, &offset, 1, OMPX_UINT64, OMPX_MIN, NULL) == 0);
    CHECK(lowest == offset);

    /* Rank r has r + 1 elements; local memory in between, of other sizes, must not matter. */
    void *local = ompx_target_alloc(1000 * (size_t)(me + 1), device, ompx_local_mem_alloc);
    int64_t *asymmetric =
        ompx_target_alloc(sizeof(int64_t) * (size_t)(me + 1), device, ompx_asymmetric_mem_alloc);
    CHECK(local != NULL && asymmetric != NULL);
    for (int64_t i = 0; i <= me; ++i) {
        int64_t const x = value(me, (int)i);
        CHECK(ompx_target_put(me, asymmetric + i, device, &x, host, sizeof(x)) == 0);
    }
    meet();
    for (int rank = 0; rank < ranks; ++rank) {
        int64_t x = 0;
        int const last = me < rank ? me : rank; /* exists in both */
        CHECK(ompx_target_get(&x, host, rank, asymmetric + last, device, sizeof(x)) == 0);
        CHECK(x == value(rank, last));
        if (rank < me) {
            CHECK(ompx_target_get(&x, host, rank, asymmetric + me, device, sizeof(x)) ==
                  OMPX_ERR_RANGE);
        }
    }
    int64_t const mine = value(me, 1);
    CHECK(ompx_target_put(next, symmetric, device, &mine, host, sizeof(mine)) == 0);
    meet();
    int64_t got = 0;
    CHECK(ompx_target_get(&got, host, me, symmetric, device, sizeof(got)) == 0);
    CHECK(got == value(previous, 1));
    meet();
    CHECK(ompx_target_free(asymmetric, device) == 0);
    CHECK(ompx_target_free(symmetric, device) == 0);
    CHECK(ompx_target_free(local, device) == 0);
    CHECK(ompx_target_free(NULL, device) == 0);
    ompx_segment_info_t after;
    CHECK(ompx_target_segment_info(device, &after) == 0);
    CHECK(after.symmetric_used == before.symmetric_used);
    CHECK(after.local_used == before.local_used);
    CHECK(after.num_allocations == before.num_allocations);
}

/* What ranks have for themselves, of different sizes, does not move what they map alike. */
static void maps_beside_own_memory(void) {
    void *parts = ompx_target_alloc(64 + 4096 * (size_t)me, 0, ompx_asymmetric_mem_alloc);
    void *own = me == 0 ? ompx_target_alloc(5000, 0, ompx_local_mem_alloc) : NULL;
    int64_t *first = malloc(4096);
    int64_t *second = malloc(4096);
    memset(first, 0, 4096);
    memset(second, 0, 4096);
#pragma omp target enter data map(to : first[0 : 512])
#pragma omp target enter data map(to : second[0 : 512])
    meet();
    int64_t const sent = value(me, 3);
    CHECK(ompx_target_put(next, second, 0, &sent, host, sizeof(sent)) == 0);
    meet();
#pragma omp target update from(first[0 : 512], second[0 : 512])
    CHECK(first[0] == 0 && second[0] == value(previous, 3));
    meet();
#pragma omp target exit data map(release : first[0 : 512])
#pragma omp target exit data map(release : second[0 : 512])
    free(first);
    free(second);
    CHECK(ompx_target_free(own, 0) == 0);
    CHECK(ompx_target_free(parts, 0) == 0);
}

/* libomptarget aligns the copy of a part of a structure: there is room before it that is not the
 * member that lies before it on the host. */
static void parts_of_a_structure(void) {
    struct {
        double a, b;
        double *p;
    } *s = omp_aligned_alloc(64, sizeof(*s), omp_default_mem_alloc);
    double data[4] = {1, 2, 3, 4};
    s->a = 10;
    s->b = 20;
    s->p = data;
#pragma omp target enter data map(to : s->a)
#pragma omp target enter data map(to : s->b, s->p[0 : 4])
    double const b = 21;
    double const a = 11;
    for (int i = 0; i < 2; ++i) {
        CHECK(ompx_target_put(me, &s->b, 0, &b, host, sizeof(b)) == 0);
        CHECK(ompx_target_put(me, &s->a, 0, &a, host, sizeof(a)) == 0);
    }
#pragma omp target update from(s->a)
#pragma omp target update from(s->b)
    CHECK(s->a == 11 && s->b == 21);
#pragma omp target exit data map(release : s->b, s->p[0 : 4])
#pragma omp target exit data map(release : s->a)
    omp_free(s, omp_default_mem_alloc);
    meet();
}

/* One rank drives several devices from its threads. */
static void threads_and_devices(void) {
    int const devices = omp_get_num_devices();
    int64_t *arrays[8];
    for (int d = 0; d < devices && d < 8; ++d) {
        arrays[d] = ompx_target_alloc(sizeof(int64_t) * LENGTH, d, ompx_symmetric_mem_alloc);
        CHECK(arrays[d] != NULL);
    }
    int failures = 0;
#pragma omp parallel num_threads(4) reduction(+ : failures)
    {
        int const d = omp_get_thread_num() % devices;
        int const share = LENGTH / 4;
        int const begin = omp_get_thread_num() * share;
        int64_t mine[LENGTH / 4];
        for (int round = 0; round < 20; ++round) {
            for (int i = 0; i < share; ++i) {
                mine[i] = value(me, begin + i) + round;
            }
            failures += ompx_target_put(next, arrays[d] + begin, d, mine, host,
                                        sizeof(int64_t) * (size_t)share) != 0;
        }
    }
    CHECK(failures == 0);
    meet();
    int64_t seen[LENGTH];
    for (int t = 0; t < 4; ++t) {
        CHECK(ompx_target_get(seen, host, me, arrays[t % devices], t % devices, sizeof(seen)) == 0);
        CHECK(seen[t * (LENGTH / 4) + 3] == value(previous, t * (LENGTH / 4) + 3) + 19);
    }
    meet();
    for (int d = 0; d < devices && d < 8; ++d) {
        CHECK(ompx_target_free(arrays[d], d) == 0);
    }
}

/* A box of a plane, without its rim, from device to device, and a column back to the host. */
static void boxes(int from_device, int to_device) {
    enum { ROWS = 60, COLUMNS = 50 };
    size_t const dimensions[2] = {ROWS, COLUMNS};
    size_t const inner[2] = {ROWS - 2, COLUMNS - 2}, one[2] = {1, 1};
    int64_t *source = malloc(sizeof(int64_t) * LENGTH);
    int64_t *target = malloc(sizeof(int64_t) * LENGTH);
    memset(target, 0, sizeof(int64_t) * LENGTH);
#pragma omp target enter data device(from_device) map(to : source[0 : LENGTH])
#pragma omp target enter data device(to_device) map(to : target[0 : LENGTH])
    fill_on_device(source, from_device, me);
    meet();
    CHECK(ompx_target_put_rect(next, target, to_device, source, from_device, sizeof(int64_t), 2,
                               inner, one, one, dimensions, dimensions) == 0);
    meet();
    int wrong = 0;
    int const sender = previous;
#pragma omp target device(to_device) map(tofrom : wrong) map(to : target[0 : LENGTH])
    for (int i = 0; i < LENGTH; ++i) {
        int const row = i / COLUMNS, column = i % COLUMNS;
        int const is_inner = row > 0 && row < ROWS - 1 && column > 0 && column < COLUMNS - 1;
        wrong += target[i] != (is_inner ? (int64_t)sender * 1000000 + i : 0);
    }
    CHECK(wrong == 0);
    int64_t column[ROWS];
    size_t const tall[2] = {ROWS, 1}, start[2] = {0, 7}, zero[2] = {0, 0};
    CHECK(ompx_target_get_rect(column, host, next, source, from_device, sizeof(int64_t), 2, tall,
                               zero, start, tall, dimensions) == 0);
    for (int i = 0; i < ROWS; ++i) {
        CHECK(column[i] == value(next, i * COLUMNS + 7));
    }
    meet();
#pragma omp target exit data device(from_device) map(release : source[0 : LENGTH])
#pragma omp target exit data device(to_device) map(release : target[0 : LENGTH])
    free(source);
    free(target);
}

/* Tasks that depend on transfers: fetch from the next rank's device, change, put there. */
static void detached(int device) {
    enum { BLOCKS = 6, BLOCK = LENGTH / BLOCKS };
    int64_t *source = malloc(sizeof(int64_t) * LENGTH);
    int64_t *target = malloc(sizeof(int64_t) * LENGTH);
    static int64_t fetched[BLOCKS][BLOCK];
#pragma omp target enter data device(device) map(to : source[0 : LENGTH], target[0 : LENGTH])
    fill_on_device(source, device, me);
    meet();
#pragma omp parallel num_threads(3)
#pragma omp single
    for (int b = 0; b < BLOCKS; ++b) {
        omp_event_handle_t arrived, sent;
#pragma omp task detach(arrived) depend(out : fetched[b]) firstprivate(b)
        CHECK(ompx_target_get_detach(fetched[b], host, next, source + b * BLOCK, device,
                                     sizeof(fetched[b]), arrived) == 0);
#pragma omp task depend(inout : fetched[b]) firstprivate(b)
        for (int i = 0; i < BLOCK; ++i) {
            fetched[b][i] -= value(next, 0) - value(me, 0);
        }
#pragma omp task detach(sent) depend(inout : fetched[b]) firstprivate(b)
        CHECK(ompx_target_put_detach(next, target + b * BLOCK, device, fetched[b], host,
                                     sizeof(fetched[b]), sent) == 0);
    }
    CHECK(ompx_barrier() == 0);
    CHECK(wrong_on_device(target, device, previous) == 0);
    meet();
#pragma omp target exit data device(device) map(release : source[0 : LENGTH], target[0 : LENGTH])
    free(source);
    free(target);
}

int main(void) {
    me = ompx_rank_num();
    ranks = ompx_num_ranks();
    next = (me + 1) % ranks;
    previous = (me + ranks - 1) % ranks;
    host = omp_get_initial_device();
    CHECK(omp_get_num_devices() >= 1);
    /* Host devices are four; a machine may have one GPU. */
    int const second = omp_get_num_devices() > 1 ? 1 : 0;
    for (int round = 0; round < 3; ++round) {
        mapped_to_mapped(0, 0);
        mapped_to_mapped(0, second);
        by_device_address(0);
        by_device_address(omp_get_num_devices() - 1);
        between_host_and_device();
        allocators(round % 2 == 0 ? 0 : second);
        maps_beside_own_memory();
        parts_of_a_structure();
        boxes(0, second);
        detached(second);
    }
    threads_and_devices();
    /* Nothing to move. */
    CHECK(ompx_target_put(next, NULL, 0, NULL, host, 0) == 0);
    return 0;
}
