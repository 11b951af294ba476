/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Transfers between devices of all kinds that the ranks of a job have: host devices, GPUs, remote
 * processors and GPUs of services, in any order. All ranks have equally many devices, whose kinds
 * may differ. What all ranks map and allocate alike are counterparts, whatever kind of device has
 * them. The argument is the number of devices; DIOMP_ERRORS=return. */
#include "support/check.h"

#include <omp.h>
#include <stdlib.h>

enum { MAX_DEVICES = 8, COUNT = 150000, BYTES = COUNT * sizeof(int), ROWS = 30, COLUMNS = 40 };

#pragma omp declare target
int variable[COUNT];
#pragma omp end declare target

static int me, ranks, host, devices;
static int *mapped[MAX_DEVICES], *allocated[MAX_DEVICES], *plain;

static int value(int rank, int device, int round, int i) {
    return ((rank * MAX_DEVICES + device) * 64 + round) * COUNT + i;
}

static void fill(int *field, int device, int round) {
    int const first = value(me, device, round, 0);
#pragma omp target device(device) is_device_ptr(field)
    for (int i = 0; i < COUNT; ++i) {
        field[i] = first + i;
    }
}

static void *on_device(int *field, int device) {
    void *found = NULL;
#pragma omp target data device(device) use_device_ptr(field)
    found = field;
    return found;
}

/* Elements [begin, end) of an own array that are not first + i. */
static int wrong(const int *field, int device, int begin, int end, int first) {
    int found = 0;
    CHECK(ompx_target_get(plain, host, me, field, device, BYTES) == 0);
    for (int i = begin; i < end; ++i) {
        found += plain[i] != first + i;
    }
    return found;
}

static void meet(void) { CHECK(ompx_fence() == 0 && ompx_barrier() == 0); }

/* Each rank puts from its device `from` to device `to` of the next one, and gets from there. */
static void between(int from, int to, int round) {
    int const next = (me + 1) % ranks, previous = (me + ranks - 1) % ranks;
    int const part = COUNT / 3;
    int *const pairs[][2] = {{mapped[from], mapped[to]},
                             {allocated[from], allocated[to]},
                             {variable, mapped[to]},
                             {mapped[from], variable}};
    for (unsigned pair = 0; pair < sizeof pairs / sizeof *pairs; ++pair) {
        int *const source = pairs[pair][0], *const target = pairs[pair][1];
        if (from == to && source == target) {
            continue; /* a rank's own array is read while another one writes to it */
        }
        fill(pair == 1 ? source : on_device(source, from), from, round);
        fill(pair == 1 ? target : on_device(target, to), to, round + 1);
        meet();
        CHECK(ompx_target_put(next, target, to, source, from, sizeof(int) * part) == 0);
        CHECK(ompx_target_put(next, target + COUNT - 1, to, source + COUNT - 1, from,
                              sizeof(int)) == 0);
        meet();
        CHECK(wrong(target, to, 0, part, value(previous, from, round, 0)) == 0);
        CHECK(wrong(target, to, part, COUNT - 1, value(me, to, round + 1, 0)) == 0);
        CHECK(plain[COUNT - 1] == value(previous, from, round, COUNT - 1));
        meet();
        CHECK(ompx_target_get(source, from, next, target, to, BYTES) == 0);
        CHECK(wrong(source, from, 0, part, value(me, from, round, 0)) == 0);
        CHECK(wrong(source, from, part, COUNT - 1, value(next, to, round + 1, 0)) == 0);
        meet();
    }
    /* A box, in rows. */
    size_t const shape[2] = {ROWS, COLUMNS}, there[2] = {5, 7}, here[2] = {2, 3};
    size_t const sizes[2] = {ROWS + 20, COLUMNS + 30}, local_sizes[2] = {ROWS + 9, COLUMNS + 11};
    if (from != to) {
        fill(allocated[from], from, round);
        fill(allocated[to], to, round + 1);
        meet();
        CHECK(ompx_target_put_rect(next, allocated[to], to, allocated[from], from, sizeof(int), 2,
                                   shape, there, here, sizes, local_sizes) == 0);
        meet();
        CHECK(ompx_target_get(plain, host, me, allocated[to], to, BYTES) == 0);
        for (size_t i = 0; i < COUNT; ++i) {
            size_t const row = i / sizes[1] - there[0], column = i % sizes[1] - there[1];
            int const is_in = row < ROWS && column < COLUMNS;
            size_t const at = (row + here[0]) * local_sizes[1] + column + here[1];
            CHECK(plain[i] == (is_in ? value(previous, from, round, (int)at)
                                     : value(me, to, round + 1, (int)i)));
        }
        meet();
        CHECK(ompx_target_get_rect(allocated[from], from, next, allocated[to], to, sizeof(int), 2,
                                   shape, here, there, local_sizes, sizes) == 0);
        /* What was put came back. */
        CHECK(wrong(allocated[from], from, 0, COUNT, value(me, from, round, 0)) == 0);
        meet();
    }
}

static void mistakes(int from, int to) {
    int const next = (me + 1) % ranks;
    FAILS(ompx_target_put(next, mapped[to], to, mapped[from], from, BYTES + 4), OMPX_ERR_RANGE,
          "past the end");
    FAILS(ompx_target_put(next, mapped[to] + 1, to, plain, host, BYTES), OMPX_ERR_RANGE,
          "past the end");
    FAILS(ompx_target_get(plain, host, next, variable + 1, to, BYTES), OMPX_ERR_RANGE, "variable");
    FAILS(ompx_target_put(next, plain, to, mapped[from], from, 4), OMPX_ERR_ADDRESS,
          "neither mapped");
}

int main(int argc, char **argv) {
    me = ompx_rank_num();
    ranks = ompx_num_ranks();
    host = omp_get_initial_device();
    devices = omp_get_num_devices();
    CHECK(argc == 2 && devices == atoi(argv[1]) && devices <= MAX_DEVICES);
    plain = malloc(BYTES);
    for (int device = 0; device < devices; ++device) {
        int *const field = mapped[device] = malloc(BYTES);
#pragma omp target enter data device(device) map(alloc : field[0 : COUNT])
        allocated[device] = ompx_target_alloc(BYTES, device, ompx_symmetric_mem_alloc);
        CHECK(allocated[device] != NULL);
    }
    meet();
    for (int from = 0; from < devices; ++from) {
        for (int to = 0; to < devices; ++to) {
            between(from, to, 2 * (from + to));
            mistakes(from, to);
        }
    }
    meet();
    for (int device = 0; device < devices; ++device) {
        CHECK(ompx_target_free(allocated[device], device) == 0);
    }
    if (me == 0) {
        puts("mixed devices: ok");
    }
    return 0;
}
