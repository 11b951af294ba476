/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Variables that are `declare target`, which lie in the image of a device, not in its segment: all
 * forms of transfers between them and everything else, also with ranks that have not used their
 * device, collectives on them, and what is an error. Runs with DIOMP_ERRORS=return; the argument is
 * a library with such variables of its own. */
#include "support/check.h"

#include <dlfcn.h>
#include <omp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH = 70000, ROWS = 60, COLUMNS = 50 };

#pragma omp declare target
int64_t field[LENGTH]; /* several windows of messages */
int64_t untouched[4];
int32_t cell;
const int64_t constants[4] = {11, 22, 33, 44};
static int64_t hidden[4];
#pragma omp end declare target
int64_t linked[100];
#pragma omp declare target link(linked)

static int me, ranks, next, previous, host;

static int64_t value(int rank, int i) { return (int64_t)rank * 1000000 + i; }

static void meet(void) {
    CHECK(ompx_fence() == 0);
    CHECK(ompx_barrier() == 0);
}

static void fill(int device, int rank) {
#pragma omp target device(device)
    for (int i = 0; i < LENGTH; ++i) {
        field[i] = (int64_t)rank * 1000000 + i;
    }
}

/* Elements [begin, end) of the device's copy that are not value(rank, i). */
static int wrong(int device, int rank, int begin, int end) {
    int found = 0;
#pragma omp target device(device) map(tofrom : found)
    for (int i = begin; i < end; ++i) {
        found += field[i] != (int64_t)rank * 1000000 + i;
    }
    return found;
}

/* The first thing that happens to the devices: a rank writes to those of the next one, which has
 * done nothing with them. */
static void unused_devices(void) {
    int const devices = omp_get_num_devices();
    for (int device = 0; device < devices; ++device) {
        int32_t sent = 1000 * me + device;
        if (me % 2 == 0) {
            CHECK(ompx_target_put(next, &cell, device, &sent, host, sizeof(sent)) == 0);
        }
        meet();
        int32_t seen = -1;
        CHECK(ompx_target_get(&seen, host, me, &cell, device, sizeof(seen)) == 0);
        CHECK(seen == (previous % 2 == 0 ? 1000 * previous + device : 0));
        int32_t on_device = -1;
#pragma omp target device(device) map(from : on_device)
        on_device = cell;
        CHECK(on_device == seen);
        CHECK(cell == 0); /* the host's copy is another */
    }
    meet();
}

static void put_and_get(int from_device, int to_device) {
    int64_t *mapped = malloc(sizeof(field));
    memset(mapped, 0, sizeof(field));
#pragma omp target enter data device(to_device) map(to : mapped[0 : LENGTH])
    fill(from_device, me);
    fill(to_device, me + 100);
    meet();
    /* From the variable to the next rank's variable. */
    int64_t const part = LENGTH / 2;
    CHECK(ompx_target_put(next, field, to_device, field, from_device, sizeof(int64_t) * part) == 0);
    meet();
    CHECK(wrong(to_device, previous, 0, (int)part) == 0);
    CHECK(wrong(to_device, me + 100, (int)part, LENGTH) == 0);
    meet();
    /* From there to a mapped array, and from a mapped array back. */
    fill(to_device, me + 7);
    meet();
    CHECK(ompx_target_get(mapped, to_device, next, field, to_device, sizeof(field)) == 0);
    int mine = 0;
#pragma omp target device(to_device) map(tofrom : mine) map(to : mapped[0 : LENGTH])
    for (int i = 0; i < LENGTH; ++i) {
        mine += mapped[i] == (int64_t)(next + 7) * 1000000 + i;
    }
    CHECK(mine == LENGTH);
    meet();
    CHECK(ompx_target_put(next, field + 3, to_device, mapped + 3, to_device, sizeof(int64_t) * 9) ==
          0);
    meet();
    /* What the previous rank had was of the rank after it: this one. */
    CHECK(wrong(to_device, me + 7, 0, LENGTH) == 0);
    meet();
    /* Own memory into the next rank's segment. */
    CHECK(ompx_target_put(next, mapped, to_device, field, to_device, sizeof(field)) == 0);
    meet();
    int64_t last = 0;
    CHECK(ompx_target_get(&last, host, me, mapped + LENGTH - 1, to_device, sizeof(last)) == 0);
    CHECK(last == value(previous + 7, LENGTH - 1));
    meet();
#pragma omp target exit data device(to_device) map(release : mapped[0 : LENGTH])
    free(mapped);
}

static void without_waiting(int device) {
    static int64_t here[LENGTH];
    fill(device, me);
    meet();
    ompx_event_t event;
    CHECK(ompx_target_get_nb(here, host, next, field, device, sizeof(field), &event) == 0);
    CHECK(ompx_event_wait(&event) == 0);
    for (int i = 0; i < LENGTH; ++i) {
        CHECK(here[i] == value(next, i));
        here[i] = value(me + 50, i);
    }
    meet();
    int64_t const half = LENGTH / 2;
    CHECK(ompx_target_put_nb(next, field, device, here, host, sizeof(int64_t) * half, &event) == 0);
    CHECK(ompx_target_put_nb(next, field + half, device, here + half, host, sizeof(int64_t) * half,
                             NULL) == 0);
    CHECK(ompx_event_wait(&event) == 0);
    meet();
    CHECK(wrong(device, previous + 50, 0, LENGTH) == 0);
    meet();
#pragma omp parallel num_threads(2)
#pragma omp single
    {
        omp_event_handle_t arrived, sent;
#pragma omp task detach(arrived) depend(out : here)
        CHECK(ompx_target_get_detach(here, host, next, field, device, sizeof(field), arrived) == 0);
#pragma omp task depend(inout : here)
        for (int i = 0; i < LENGTH; ++i) {
            here[i] += value(1, 0);
        }
#pragma omp task detach(sent) depend(inout : here)
        CHECK(ompx_target_put_detach(next, field, device, here, host, sizeof(field), sent) == 0);
    }
    CHECK(ompx_barrier() == 0);
    CHECK(wrong(device, previous + 51, 0, LENGTH) == 0);
    meet();
}

static void boxes(int device) {
    size_t const plane[2] = {ROWS, COLUMNS}, tall[2] = {ROWS, 1};
    size_t const zero[2] = {0, 0}, seventh[2] = {0, 7};
    int64_t column[ROWS];
    fill(device, me);
    meet();
    CHECK(ompx_target_get_rect(column, host, next, field, device, sizeof(int64_t), 2, tall, zero,
                               seventh, tall, plane) == 0);
    for (int i = 0; i < ROWS; ++i) {
        CHECK(column[i] == value(next, i * COLUMNS + 7));
        column[i] = -1 - me;
    }
    meet();
    CHECK(ompx_target_put_rect(next, field, device, column, host, sizeof(int64_t), 2, tall, seventh,
                               zero, plane, tall) == 0);
    meet();
    int64_t seen[ROWS * COLUMNS];
    CHECK(ompx_target_get(seen, host, me, field, device, sizeof(seen)) == 0);
    for (int i = 0; i < ROWS * COLUMNS; ++i) {
        CHECK(seen[i] == (i % COLUMNS == 7 ? -1 - previous : value(me, i)));
    }
    meet();
}

static void collectives(int device) {
    fill(device, me);
    int64_t *sums = malloc(sizeof(int64_t) * 1000);
#pragma omp target enter data device(device) map(alloc : sums[0 : 1000])
    CHECK(ompx_target_allreduce(sums, field, device, 1000, OMPX_INT64, OMPX_SUM, NULL) == 0);
    CHECK(ompx_target_bcast(field, device, sizeof(field), ranks - 1, NULL) == 0);
    CHECK(wrong(device, ranks - 1, 0, LENGTH) == 0);
    int64_t seen[1000];
    CHECK(ompx_target_get(seen, host, me, sums, device, sizeof(seen)) == 0);
    for (int i = 0; i < 1000; ++i) {
        CHECK(seen[i] == (int64_t)ranks * i + 1000000 * (int64_t)(ranks * (ranks - 1) / 2));
    }
    meet();
#pragma omp target exit data device(device) map(release : sums[0 : 1000])
    free(sums);
    FAILS(ompx_target_bcast(field + 1, device, sizeof(field), 0, NULL), OMPX_ERR_RANGE,
          "past the end of the variable");
    meet();
}

/* Each an error, and nothing is written. */
static void mistakes(int device) {
    int64_t data[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    FAILS(ompx_target_put(next, untouched, device, data, host, sizeof(untouched) + 1),
          OMPX_ERR_RANGE, "past the end of rank");
    FAILS(ompx_target_put(next, untouched + 3, device, data, host, 16), OMPX_ERR_RANGE,
          "8 bytes from there on");
    FAILS(ompx_target_get(data, host, next, untouched + 1, device, sizeof(untouched)),
          OMPX_ERR_RANGE, "variable untouched of 32 bytes");
    FAILS(ompx_target_put(next, field, device, untouched, device, 64), OMPX_ERR_RANGE,
          "past the end of the variable");
    FAILS(ompx_target_put(me, untouched, device, data, host, 64), OMPX_ERR_RANGE,
          "past the end of the variable");
    size_t const rows[2] = {2, 2}, square[2] = {2, 2}, wide[2] = {2, 8}, zero[2] = {0, 0};
    FAILS(ompx_target_put_rect(next, untouched, device, data, host, sizeof(int64_t), 2, rows, zero,
                               zero, wide, square),
          OMPX_ERR_RANGE, "past the end of rank");
    ompx_event_t event;
    FAILS(ompx_target_put_nb(next, untouched, device, data, host, 40, &event), OMPX_ERR_RANGE,
          "past the end of rank");
    FAILS(ompx_target_put(next, untouched, omp_get_num_devices() + 1, data, host, 8), OMPX_ERR_ARG,
          "this process has");
    /* Constant, of this file alone, or linked to what nobody has mapped. */
    int64_t seen[4] = {0};
    CHECK(ompx_target_get(seen, host, next, constants, device, sizeof(seen)) == 0);
    CHECK(seen[0] == 11 && seen[3] == 44);
    FAILS(ompx_target_put(next, (void *)constants, device, data, host, 8), OMPX_ERR_ADDRESS,
          "is constant");
    /* Also the own rank's, as the local side, and in collectives. */
    FAILS(ompx_target_put(me, (void *)constants, device, data, host, 8), OMPX_ERR_ADDRESS,
          "is constant");
    FAILS(ompx_target_get((void *)constants, device, next, untouched, device, 8), OMPX_ERR_ADDRESS,
          "is a constant");
    FAILS(ompx_target_allreduce((void *)constants, untouched, device, 1, OMPX_INT64, OMPX_SUM,
                                ompx_group_world),
          OMPX_ERR_ADDRESS, "is a constant");
    FAILS(ompx_target_put_rect(next, (void *)constants, device, data, host, sizeof(int64_t), 2,
                               rows, zero, zero, square, square),
          OMPX_ERR_ADDRESS, "is constant");
    FAILS(ompx_target_put(next, hidden, device, data, host, 8), OMPX_ERR_ADDRESS, "neither mapped");
    FAILS(ompx_target_put(next, linked, device, data, host, 8), OMPX_ERR_ADDRESS, "neither mapped");
    meet();
    int64_t sum = 0;
#pragma omp target device(device) map(tofrom : sum)
    for (int i = 0; i < 4; ++i) {
        sum += untouched[i] + hidden[i];
    }
    CHECK(sum == 0);
    meet();
}

/* A `link` variable has its copy in the segment once it is mapped. */
static void linked_variable(int device) {
#pragma omp target enter data device(device) map(to : linked)
    meet();
    int64_t const sent = value(me, 1);
    CHECK(ompx_target_put(next, linked + 5, device, &sent, host, sizeof(sent)) == 0);
    meet();
    int64_t seen = 0;
#pragma omp target device(device) map(from : seen)
    seen = linked[5];
    CHECK(seen == value(previous, 1));
    meet();
#pragma omp target exit data device(device) map(release : linked)
    meet();
}

/* A library that ranks load one after the other. */
static void libraries(const char *name) {
    int64_t const sent = value(me, 2);
    void *library = NULL;
    int64_t *there = NULL;
    if (me == 0) {
        library = dlopen(name, RTLD_NOW);
        CHECK(library != NULL);
        there = dlsym(library, "of_the_library");
        CHECK(there != NULL);
        FAILS(ompx_target_put(1, there, 0, &sent, host, sizeof(sent)), OMPX_ERR_ADDRESS,
              "rank 1 has no declare target variable of_the_library");
    }
    meet();
    if (me != 0) {
        library = dlopen(name, RTLD_NOW);
        CHECK(library != NULL);
        there = dlsym(library, "of_the_library");
    }
    int64_t (*on_device)(int) = (int64_t (*)(int))dlsym(library, "first_on_device");
    CHECK(on_device != NULL);
    meet();
    CHECK(ompx_target_put(next, there, 0, &sent, host, sizeof(sent)) == 0);
    meet();
    CHECK(on_device(0) == value(previous, 2));
    meet();
}

/* Rank 1 is about to end, and its devices with it; its runtime stays as long as rank 0 does. */
static void after_the_end(void) {
    int32_t seen = 0;
    while (me == 0 && ompx_target_get(&seen, host, 1, &cell, 0, sizeof(seen)) == 0) {
    }
    if (me == 0) {
        FAILS(ompx_target_get(&seen, host, 1, &cell, 0, sizeof(seen)), OMPX_ERR_ADDRESS,
              "its program has ended");
        FAILS(ompx_target_put(1, untouched, 0, &seen, host, sizeof(seen)), OMPX_ERR_ADDRESS,
              "its program has ended");
    }
}

int main(int count, char **arguments) {
    me = ompx_rank_num();
    ranks = ompx_num_ranks();
    next = (me + 1) % ranks;
    previous = (me + ranks - 1) % ranks;
    host = omp_get_initial_device();
    CHECK(count == 2);
    CHECK(omp_get_num_devices() >= 1);
    int const second = omp_get_num_devices() > 1 ? 1 : 0;
    unused_devices();
    if (second != 0) {
        put_and_get(0, second);
        put_and_get(second, 0);
    }
    without_waiting(second);
    boxes(0);
    collectives(0);
    if (ranks > 1) {
        mistakes(second);
        libraries(arguments[1]);
    }
    linked_variable(0);
    if (me == 0) {
        puts("variables: ok");
    }
    if (ranks > 1) {
        after_the_end();
    }
    return 0;
}
