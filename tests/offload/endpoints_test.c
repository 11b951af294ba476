/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Groups of endpoints on host devices, and collectives on what is mapped there: all of a rank's
 * devices in one call, a thread for each, and without blocking. Runs with DIOMP_ERRORS=return. */
#include "support/check.h"

#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES = 2, LENGTH = 20000 };

static int me, ranks;
static int devices[DEVICES];
static ompx_group_t all; /* every device of every rank */

/* ---- Groups ---- */

static void groups(void) {
    int const size = ranks * DEVICES;
    CHECK(ompx_group_size(all) == size);
    CHECK(ompx_group_num_own_endpoints(all) == DEVICES);
    CHECK(ompx_group_rank(all) == me * DEVICES);
    for (int member = 0; member < size; ++member) {
        ompx_endpoint_t endpoint;
        CHECK(ompx_group_endpoint(all, member, &endpoint) == 0);
        CHECK(endpoint.rank == member / DEVICES &&
              ompx_group_world_rank(all, member) == endpoint.rank);
    }
    /* The same place of each rank's list, and backwards. */
    int colors[DEVICES], keys[DEVICES];
    ompx_group_t columns[DEVICES];
    for (int i = 0; i < DEVICES; ++i) {
        colors[i] = i;
        keys[i] = -me;
    }
    CHECK(ompx_group_split_endpoints(all, colors, keys, columns) == 0);
    CHECK(columns[0] != columns[1]);
    for (int i = 0; i < DEVICES; ++i) {
        CHECK(ompx_group_size(columns[i]) == ranks);
        CHECK(ompx_group_rank(columns[i]) == ranks - 1 - me);
        int members[2] = {0, ranks - 1}, translated[2];
        CHECK(ompx_group_translate(columns[i], members, 2, all, translated) == 0);
        CHECK(translated[0] == (ranks - 1) * DEVICES + i && translated[1] == i);
        CHECK(ompx_group_translate(columns[i], members, 2, columns[1 - i], translated) == 0);
        CHECK(translated[0] == OMPX_NO_MEMBER);
        CHECK(ompx_group_translate(columns[i], members, 2, ompx_group_world, translated) == 0);
        CHECK(translated[0] == ranks - 1 && translated[1] == 0);
    }
    ompx_group_t merged, copy, half;
    CHECK(ompx_group_merge(columns[1], columns[0], &merged) == 0);
    CHECK(ompx_group_size(merged) == size && ompx_group_rank(merged) == ranks - 1 - me);
    CHECK(ompx_group_dup(merged, &copy) == 0);
    CHECK(ompx_group_size(copy) == size && copy != merged);
    CHECK(ompx_group_split(copy, me % 2, 0, &half) == 0);
    CHECK(ompx_group_num_own_endpoints(half) == DEVICES);
    CHECK(ompx_group_merge(all, ompx_group_world, &half) == OMPX_ERR_ARG);
    CHECK(ompx_barrier(merged) == 0);
    CHECK(ompx_fence(merged) == 0);
    CHECK(ompx_group_free(&copy) == 0 && ompx_group_free(&merged) == 0);
    CHECK(ompx_group_free(&columns[0]) == 0 && ompx_group_free(&columns[1]) == 0);
    ompx_endpoint_t twice[2] = {{me, 0}, {me, 0}};
    CHECK(ompx_group_create_endpoints(&half, twice, 2) == OMPX_ERR_ARG);
    CHECK(strstr(ompx_last_error(), "listed twice") != NULL);
    CHECK(ompx_barrier() == 0);
}

/* ---- One call for all devices of a rank ---- */

static double *field; /* a copy on each device, and the host's */

static void set_copies(double base) {
    for (int i = 0; i < DEVICES; ++i) {
        double const value = base + me * DEVICES + i;
        double *const f = field;
#pragma omp target device(devices[i]) map(to : f[0 : LENGTH])
        for (int k = 0; k < LENGTH; ++k) {
            f[k] = value;
        }
    }
}

static int copies_hold(double value, size_t begin, size_t count) {
    int wrong = 0;
    for (int i = 0; i < DEVICES; ++i) {
        double *const f = field;
#pragma omp target device(devices[i]) map(to : f[0 : LENGTH]) map(tofrom : wrong)
        for (size_t k = begin; k < begin + count; ++k) {
            wrong += f[k] != value;
        }
    }
    return wrong == 0;
}

static void all_at_once(size_t count) {
    int const size = ranks * DEVICES;
    double const sum = size * (size - 1) / 2.0;
    set_copies(0);
    CHECK(ompx_target_allreduce(field, field, OMPX_GROUP_DEVICES, count, OMPX_DOUBLE, OMPX_SUM,
                                all) == 0);
    CHECK(copies_hold(sum, 0, count));
    set_copies(0);
    CHECK(ompx_target_allreduce(field, field, OMPX_GROUP_DEVICES, count, OMPX_DOUBLE, OMPX_AVG,
                                all) == 0);
    CHECK(copies_hold(sum / size, 0, count));
    /* Pairs of equal value and index. */
    for (int op = OMPX_MINLOC; op <= OMPX_MAXLOC; ++op) {
        set_copies(0);
        CHECK(ompx_target_allreduce(field, field, OMPX_GROUP_DEVICES, count / 2, OMPX_2DOUBLE, op,
                                    all) == 0);
        CHECK(copies_hold(op == OMPX_MINLOC ? 0 : size - 1, 0, count / 2 * 2));
    }
    set_copies(100);
    int const root = size - 2;
    CHECK(ompx_target_bcast(field, OMPX_GROUP_DEVICES, sizeof(double) * count, root, all) == 0);
    CHECK(copies_hold(100 + root, 0, count));
    /* Part of what is mapped, not from its start. */
    set_copies(0);
    CHECK(ompx_target_allreduce(field + 7, field + 7, OMPX_GROUP_DEVICES, count - 10, OMPX_DOUBLE,
                                OMPX_MAX, all) == 0);
    CHECK(copies_hold(size - 1, 7, count - 10));
    size_t const part = count / (size_t)size / 2;
    set_copies(1);
    CHECK(ompx_target_allgather(field, field + LENGTH - part, OMPX_GROUP_DEVICES,
                                sizeof(double) * part, all) == 0);
    for (int member = 0; member < size; ++member) {
        CHECK(copies_hold(1 + member, (size_t)member * part, part));
    }
}

/* Of `member` alone. */
static void set_copy(int member, double value) {
    if (member / DEVICES == me) {
        double *const f = field;
#pragma omp target device(devices[member % DEVICES]) map(to : f[0 : LENGTH])
        for (int k = 0; k < LENGTH; ++k) {
            f[k] = value;
        }
    }
}

/* Bits of the first `count` elements of all copies. */
static int copies_have_bits(uint64_t bits, size_t count) {
    int wrong = 0;
    for (int i = 0; i < DEVICES; ++i) {
        double *const f = field;
#pragma omp target device(devices[i]) map(to : f[0 : LENGTH]) map(tofrom : wrong)
        for (size_t k = 0; k < count; ++k) {
            union {
                double value;
                uint64_t bits;
            } const found = {f[k]};
            wrong += found.bits != bits;
        }
    }
    return wrong == 0;
}

static int reduced_to(ompx_op_t op, uint64_t bits, size_t count) {
    CHECK(ompx_target_allreduce(field, field, OMPX_GROUP_DEVICES, count, OMPX_DOUBLE, op, all) ==
          0);
    return copies_have_bits(bits, count);
}

/* A NaN of one endpoint is the result everywhere, and -0 is less than 0. */
static void nans_and_zeros(size_t count) {
    int const size = ranks * DEVICES;
    uint64_t const quiet_nan = UINT64_C(0x7ff8000000000000);
    for (int lost = 0; lost < size; ++lost) {
        set_copies(0);
        set_copy(lost, -NAN);
        CHECK(reduced_to(lost % 2 == 0 ? OMPX_MAX : OMPX_MIN, quiet_nan, count));
        for (int i = 0; i < size; ++i) {
            set_copy(i, i == lost ? 0.0 : -0.0);
        }
        CHECK(reduced_to(OMPX_MAX, 0, count));
        for (int i = 0; i < size; ++i) {
            set_copy(i, i == lost ? -0.0 : 0.0);
        }
        CHECK(reduced_to(OMPX_MIN, UINT64_C(1) << 63, count));
    }
}

/* ---- A thread for each device, and calls that do not block ---- */

static void a_thread_each(void) {
    int const size = ranks * DEVICES;
    set_copies(5);
#pragma omp parallel num_threads(DEVICES)
    {
        int const i = omp_get_thread_num();
        for (int round = 0; round < 20; ++round) {
            CHECK(ompx_target_allreduce(field, field, devices[i], LENGTH, OMPX_DOUBLE, OMPX_MIN,
                                        all) == 0);
            CHECK(ompx_target_bcast(field, devices[i], 64, round % size, all) == 0);
        }
    }
    CHECK(copies_hold(5, 0, LENGTH));
}

static void without_blocking(void) {
    int const size = ranks * DEVICES;
    set_copies(0);
    ompx_event_t events[2 * DEVICES];
    for (int i = DEVICES - 1; i >= 0; --i) {
        CHECK(ompx_target_allreduce_nb(field, field, devices[i], LENGTH, OMPX_DOUBLE, OMPX_SUM, all,
                                       &events[i]) == 0);
        CHECK(ompx_target_bcast_from_nb(field, devices[i], 8, 0, all, &events[DEVICES + i]) == 0);
    }
    for (int i = 0; i < 2 * DEVICES; ++i) {
        CHECK(ompx_event_wait(&events[i]) == 0);
    }
    CHECK(copies_hold(size * (size - 1) / 2.0, 0, LENGTH));
    /* In a task that another depends on. */
    set_copies(1);
    int done = 0;
    omp_event_handle_t task = (omp_event_handle_t)0;
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma omp task detach(task) depend(out : done)
        {
            ompx_event_t event;
            CHECK(ompx_target_allreduce_nb(field, field, OMPX_GROUP_DEVICES, LENGTH, OMPX_DOUBLE,
                                           OMPX_SUM, all, &event) == 0);
            CHECK(ompx_event_detach(&event, task) == 0);
            CHECK(event == NULL);
        }
#pragma omp task depend(in : done)
        CHECK(copies_hold(size * (size + 1) / 2.0, 0, LENGTH));
    }
}

/* ---- A device each, in a group of ranks ---- */

static void by_ranks(void) {
    double *const f = field;
    set_copies(0);
    CHECK(ompx_target_allreduce(f, f, devices[1], LENGTH, OMPX_DOUBLE, OMPX_SUM,
                                ompx_group_world) == 0);
    CHECK(ompx_target_bcast(f, OMPX_GROUP_DEVICES, 8, 0, ompx_group_world) ==
          0); /* the default one */
    double sum = 0, first = -1;
    for (int rank = 0; rank < ranks; ++rank) {
        sum += rank * DEVICES + 1;
    }
    double got = 0;
#pragma omp target device(devices[1]) map(to : f[0 : LENGTH]) map(from : got)
    got = f[LENGTH - 1];
    CHECK(got == sum);
#pragma omp target device(devices[0]) map(to : f[0 : LENGTH]) map(from : first)
    first = f[0];
    CHECK(first == 0);
}

/* ---- The same call again, when its buffers or its group are others ---- */

static double first_of(double *array, int device) {
    double got = -1;
#pragma omp target device(device) map(to : array[0 : 64]) map(from : got)
    got = array[0];
    return got;
}

static void the_same_call_after_a_change(void) {
    double small[64], spacer[64];
    double const base = 10 * me;
    int const d = devices[0];
    for (int round = 0; round < 4; ++round) {
        /* Every other time something else lies where the copy was. */
        for (int i = 0; i < 64; ++i) {
            spacer[i] = -2;
            small[i] = base + round;
        }
        if (round % 2 == 1) {
#pragma omp target enter data device(d) map(to : spacer[0 : 64])
        }
#pragma omp target enter data device(d) map(to : small[0 : 64])
        for (int again = 0; again < 3; ++again) {
            CHECK(ompx_target_bcast(small, d, sizeof small, ranks - 1, ompx_group_world) == 0);
            CHECK(first_of(small, d) == 10 * (ranks - 1) + round);
        }
        if (round % 2 == 1) {
            CHECK(first_of(spacer, d) == -2);
        }
        CHECK(ompx_barrier() == 0);
#pragma omp target exit data device(d) map(delete : small[0 : 64])
        if (round % 2 == 1) {
#pragma omp target exit data device(d) map(delete : spacer[0 : 64])
        }
        CHECK(ompx_target_bcast(small, d, sizeof small, ranks - 1, ompx_group_world) ==
              OMPX_ERR_ADDRESS);
        CHECK(ompx_barrier() == 0);
    }
    /* A group in the place of one that was freed, with its members the other way round. */
    double *const f = field;
    for (int round = 0; round < 4; ++round) {
        int reversed[64];
        ompx_group_t group;
        for (int i = 0; i < ranks; ++i) {
            reversed[i] = round % 2 == 1 ? ranks - 1 - i : i;
        }
        CHECK(ompx_group_create(&group, reversed, ranks) == 0);
        for (int again = 0; again < 2; ++again) {
            set_copies(0);
            CHECK(ompx_target_bcast(f, d, sizeof *f, 0, group) == 0);
            CHECK(first_of(f, d) == reversed[0] * DEVICES);
        }
        CHECK(ompx_group_free(&group) == 0);
    }
}

/* ---- Mistakes ---- */

static void mistakes(void) {
    double other[4] = {0};
    CHECK(ompx_target_allreduce(other, other, OMPX_GROUP_DEVICES, 4, OMPX_DOUBLE, OMPX_SUM, all) ==
          OMPX_ERR_ADDRESS);
    CHECK(ompx_target_allreduce(field, field, OMPX_GROUP_DEVICES, LENGTH + 1, OMPX_DOUBLE, OMPX_SUM,
                                all) == OMPX_ERR_RANGE);
    int not_mine = 0;
    while (not_mine == devices[0] || not_mine == devices[1]) {
        ++not_mine;
    }
    CHECK(ompx_target_allreduce(field, field, not_mine, LENGTH, OMPX_DOUBLE, OMPX_SUM, all) ==
          OMPX_ERR_ARG);
    CHECK(strstr(ompx_last_error(), "not one of this rank's endpoints") != NULL);
    CHECK(ompx_target_bcast(field, OMPX_GROUP_DEVICES, 8, ranks * DEVICES, all) == OMPX_ERR_RANK);
    CHECK(ompx_bcast(other, 8, all) == OMPX_ERR_ARG);
    CHECK(ompx_target_allreduce(NULL, NULL, OMPX_GROUP_DEVICES, 0, OMPX_DOUBLE, OMPX_SUM, all) ==
          0);
    /* Endpoints of one rank that disagree: an error on all ranks, and the group stays usable. */
    int codes[DEVICES];
#pragma omp parallel num_threads(DEVICES)
    {
        int const i = omp_get_thread_num();
        size_t const count = me == 0 && i == 1 ? 11 : 10;
        codes[i] =
            ompx_target_allreduce(field, field, devices[i], count, OMPX_DOUBLE, OMPX_SUM, all);
    }
    CHECK(codes[0] == OMPX_ERR_MISMATCH && codes[1] == OMPX_ERR_MISMATCH);
    CHECK(ompx_target_bcast(field, OMPX_GROUP_DEVICES, me == 0 ? 72000 : 80000, 0, all) ==
          (ranks > 1 ? OMPX_ERR_MISMATCH : 0));
    CHECK(ompx_barrier(all) == 0);
    /* A call that waits for its rank's other endpoint when the group goes. */
    ompx_group_t copy;
    ompx_event_t lonely;
    CHECK(ompx_group_dup(all, &copy) == 0);
    CHECK(ompx_target_bcast_nb(field, devices[0], 8, 0, copy, &lonely) == 0);
    CHECK(ompx_group_free(&copy) == 0);
    CHECK(ompx_event_wait(&lonely) == OMPX_ERR_ARG);
    CHECK(ompx_target_bcast(field, OMPX_GROUP_DEVICES, 8, 0, copy) == OMPX_ERR_ARG);
}

int main(void) {
    me = ompx_rank_num();
    ranks = ompx_num_ranks();
    for (int i = 0; i < DEVICES; ++i) {
        devices[i] = ompx_rank_device(i);
    }
    CHECK(ompx_group_create_devices(ompx_group_world, &all) == 0);
    groups();
    field = malloc(sizeof(double) * LENGTH);
    double *const f = field;
    for (int i = 0; i < DEVICES; ++i) {
#pragma omp target enter data device(devices[i]) map(alloc : f[0 : LENGTH])
    }
    nans_and_zeros(20);
    nans_and_zeros(LENGTH);
    all_at_once(20);
    all_at_once(600);
    all_at_once(LENGTH);
    a_thread_each();
    without_blocking();
    by_ranks();
    the_same_call_after_a_change();
    mistakes();
    CHECK(ompx_barrier() == 0);
    for (int i = 0; i < DEVICES; ++i) {
#pragma omp target exit data device(devices[i]) map(release : f[0 : LENGTH])
    }
    CHECK(ompx_group_free(&all) == 0);
    free(field);
    return 0;
}
