/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Collectives of the host on memory of remote devices: in groups of ranks and of (rank, device).
 * Each rank has as many remote devices as the argument says, and no others; DIOMP_ERRORS=return. */
#include "support/check.h"

#include <omp.h>
#include <stdint.h>
#include <stdlib.h>

enum { LENGTH = 60000, MANY = 64 };

static int me, ranks, num_devices, first_device, host; /* `first_device`: after the local devices */
static int64_t *data, *result; /* mapped to the devices, LENGTH * ranks elements */

static int64_t value(int member, int i) { return (int64_t)member * 1000000 + i; }

/* Sets elements of a mapped array on a device to value(member, i). */
static void fill(int64_t *array, int device, int member, int count) {
#pragma omp target device(device) map(to : array[0 : LENGTH])
    for (int i = 0; i < count; ++i) {
        array[i] = (int64_t)member * 1000000 + i;
    }
}

/* Number of elements that are not value(member, i), from `begin` on. */
static int wrong(int64_t *array, int device, int begin, int member, int count) {
    int found = 0;
#pragma omp target device(device) map(tofrom : found) map(to : array[0 : LENGTH])
    for (int i = 0; i < count; ++i) {
        found += array[begin + i] != (int64_t)member * 1000000 + i;
    }
    return found;
}

/* All calls on one group of which this rank is a member, with one device of each rank. `self`: the
 * number of this rank in it. */
static void all_calls(ompx_group_t group, int device, int self, int size, int count) {
    size_t const nbytes = sizeof(int64_t) * (size_t)count;
    int const root = size - 1;
    fill(data, device, self, count);
    CHECK(ompx_target_bcast(data, device, nbytes, root, group) == 0);
    CHECK(wrong(data, device, 0, root, count) == 0);
    /* the sum of value(member, i) is size * i + a constant */
    fill(data, device, self, count);
    fill(result, device, -5, count);
    CHECK(ompx_target_allreduce(result, data, device, (size_t)count, OMPX_INT64, OMPX_SUM, group) ==
          0);
    int64_t const base = (int64_t)size * (size - 1) / 2 * 1000000;
    int64_t const sample[3] = {0, count / 2, count - 1};
    for (int i = 0; i < 3; ++i) {
        int64_t got = 0;
        CHECK(ompx_target_get(&got, host, me, result + sample[i], device, sizeof got) == 0);
        CHECK(got == base + size * sample[i]);
    }
    CHECK(ompx_target_allreduce(data, data, device, (size_t)count, OMPX_INT64, OMPX_MAX, group) ==
          0);
    CHECK(wrong(data, device, 0, size - 1, count) == 0);
    fill(data, device, self, count);
    fill(result, device, -5, count);
    CHECK(ompx_target_reduce(result, data, device, (size_t)count, OMPX_INT64, OMPX_MIN, root,
                             group) == 0);
    CHECK(wrong(result, device, 0, self == root ? 0 : -5, count) == 0);
    /* scans: of the maximum, and of the members before */
    CHECK(ompx_target_scan(result, data, device, (size_t)count, OMPX_INT64, OMPX_MAX, group) == 0);
    CHECK(wrong(result, device, 0, self, count) == 0);
    fill(result, device, -5, count);
    CHECK(ompx_target_exscan(result, data, device, (size_t)count, OMPX_INT64, OMPX_MAX, group) ==
          0);
    CHECK(wrong(result, device, 0, self == 0 ? -5 : self - 1, count) == 0);
    /* blocks */
    int const part = count / size;
    size_t const block = sizeof(int64_t) * (size_t)part;
    fill(data, device, self, count);
    CHECK(ompx_target_allgather(result, data, device, block, group) == 0);
    for (int member = 0; member < size; ++member) {
        CHECK(wrong(result, device, member * part, member, part) == 0);
    }
    fill(result, device, -5, count);
    CHECK(ompx_target_gather(result, data, device, block, root, group) == 0);
    for (int member = 0; member < size && self == root; ++member) {
        CHECK(wrong(result, device, member * part, member, part) == 0);
    }
    CHECK(self == root || wrong(result, device, 0, -5, count) == 0);
    /* value(root, member * part + i) to each member, which differs from value(root, i) */
    CHECK(ompx_target_scatter(result, data, device, block, root, group) == 0);
    int64_t first = 0;
    CHECK(ompx_target_get(&first, host, me, result, device, sizeof first) == 0);
    CHECK(first == value(root, self * part));
    CHECK(ompx_target_alltoall(result, data, device, block, group) == 0);
    for (int member = 0; member < size; ++member) {
        CHECK(ompx_target_get(&first, host, me, result + member * part, device, sizeof first) == 0);
        CHECK(first == value(member, self * part));
    }
    CHECK(ompx_target_reduce_scatter(result, data, device, (size_t)part, OMPX_INT64, OMPX_MAX,
                                     group) == 0);
    CHECK(ompx_target_get(&first, host, me, result, device, sizeof first) == 0);
    CHECK(first == value(size - 1, self * part));
    /* blocks of several sizes, of which one is empty */
    size_t sizes[MANY], offsets[MANY];
    size_t total = 0;
    for (int member = 0; member < size; ++member) {
        sizes[member] = block / sizeof(int64_t) / (size_t)(member + 1) * sizeof(int64_t);
        if (member == 1) {
            sizes[member] = 0;
        }
        offsets[member] = total;
        total += sizes[member];
    }
    fill(result, device, -5, count);
    CHECK(ompx_target_allgatherv(result, sizes, offsets, data, device, group) == 0);
    for (int member = 0; member < size; ++member) {
        CHECK(wrong(result, device, (int)(offsets[member] / sizeof(int64_t)), member,
                    (int)(sizes[member] / sizeof(int64_t))) == 0);
    }
    fill(result, device, -5, count);
    CHECK(ompx_target_gatherv(result, sizes, offsets, data, device, root, group) == 0);
    CHECK(self == root || wrong(result, device, 0, -5, count) == 0);
    CHECK(self != root || wrong(result, device, (int)(offsets[root] / sizeof(int64_t)), root,
                                (int)(sizes[root] / sizeof(int64_t))) == 0);
    fill(result, device, -5, count);
    CHECK(ompx_target_scatterv(result, data, sizes, offsets, device, root, group) == 0);
    CHECK(ompx_target_get(&first, host, me, result, device, sizeof first) == 0);
    CHECK(first ==
          (sizes[self] == 0 ? value(-5, 0) : value(root, (int)(offsets[self] / sizeof(int64_t)))));
    size_t all[MANY], places[MANY];
    for (int member = 0; member < size; ++member) {
        all[member] = block;
        places[member] = block * (size_t)(size - 1 - member);
    }
    CHECK(ompx_target_alltoallv(result, all, places, data, all, places, device, group) == 0);
    for (int member = 0; member < size; ++member) {
        CHECK(ompx_target_get(&first, host, me, result + (size - 1 - member) * part, device,
                              sizeof first) == 0);
        CHECK(first == value(member, (size - 1 - self) * part));
    }
}

/* Groups of ranks, of some ranks, and of endpoints in another order. */
static void groups(int device, int count) {
    all_calls(ompx_group_world, device, me, ranks, count);
    int reversed[MANY];
    ompx_endpoint_t endpoints[MANY];
    for (int i = 0; i < ranks; ++i) {
        reversed[i] = ranks - 1 - i;
        endpoints[i] = (ompx_endpoint_t){ranks - 1 - i, device};
    }
    ompx_group_t group;
    CHECK(ompx_group_create(&group, reversed, ranks) == 0);
    all_calls(group, device, ranks - 1 - me, ranks, count);
    CHECK(ompx_group_free(&group) == 0);
    CHECK(ompx_group_create_endpoints(&group, endpoints, ranks) == 0);
    all_calls(group, device, ranks - 1 - me, ranks, count);
    CHECK(ompx_group_free(&group) == 0);
    if (ranks > 1 && me != 0) {
        CHECK(ompx_group_create_endpoints(&group, endpoints, ranks - 1) == 0);
        all_calls(group, device, ranks - 1 - me, ranks - 1, count);
        CHECK(ompx_group_free(&group) == 0);
    }
    CHECK(ompx_barrier() == 0);
    CHECK(ompx_group_split(ompx_group_world, me % 2, 0, &group) == 0);
    all_calls(group, device, me / 2, (ranks + 1 - me % 2) / 2, count);
    CHECK(ompx_group_free(&group) == 0);
    CHECK(ompx_barrier() == 0);
}

/* The data of regions that are under way, and calls that do not block. */
static void order(int device) {
    for (int round = 0; round < 20; ++round) {
        int64_t *const array = data;
#pragma omp target device(device) map(to : array[0 : LENGTH]) nowait depend(out : data)
        for (int i = 0; i < LENGTH; ++i) {
            array[i] = (int64_t)(me + round) * 1000000 + i;
        }
#pragma omp taskwait
        CHECK(ompx_target_bcast(data, device, sizeof(int64_t) * LENGTH, round % ranks,
                                ompx_group_world) == 0);
        CHECK(wrong(data, device, 0, round % ranks + round, LENGTH) == 0);
    }
    /* A region that was short the last time, and is not waited for although it is long now. */
    enum { SHORT = 100 };
    for (int step = 0; step < 8; ++step) {
        int64_t *const array = data;
        int const turns = step % 4 < 3 ? 1 : 200000;
#pragma omp target device(device) map(to : array[0 : LENGTH]) nowait
        for (int turn = turns; turn > 0; --turn) {
            for (int i = 0; i < SHORT; ++i) {
                *(int64_t volatile *)&array[i] = (int64_t)(me + turn) * 1000000 + i;
            }
        }
#pragma omp taskwait
        if (turns > 1) {
            CHECK(ompx_target_allreduce(data, data, device, SHORT, OMPX_INT64, OMPX_MAX,
                                        ompx_group_world) == 0);
            CHECK(wrong(data, device, 0, ranks, SHORT) == 0);
        }
    }
    ompx_event_t events[MANY];
    fill(data, device, me, LENGTH);
    fill(result, device, -5, LENGTH);
    int const part = LENGTH / MANY;
    for (int i = 0; i < MANY; ++i) {
        CHECK(ompx_target_allreduce_nb(result + i * part, data, device, (size_t)part, OMPX_INT64,
                                       i % 2 ? OMPX_MAX : OMPX_MIN, ompx_group_world,
                                       &events[i]) == 0);
    }
    for (int i = 0; i < MANY; ++i) {
        CHECK(ompx_event_wait(&events[i]) == 0);
        CHECK(wrong(result, device, i * part, i % 2 ? ranks - 1 : 0, part) == 0);
    }
}

/* Groups of the same ranks whose first calls are under way at once, in another order on each rank.
 */
static void many_groups(int device) {
    enum { GROUPS = 100, EACH = LENGTH / GROUPS };
    ompx_group_t made[GROUPS];
    ompx_event_t events[GROUPS];
    int all[MANY];
    for (int i = 0; i < ranks; ++i) {
        all[i] = i;
    }
    for (int i = 0; i < GROUPS; ++i) {
        CHECK(ompx_group_create(&made[i], all, ranks) == 0);
    }
    fill(data, device, me, LENGTH);
    fill(result, device, -5, LENGTH);
    for (int i = 0; i < GROUPS; ++i) {
        int const used = (i + me * (GROUPS / ranks)) % GROUPS;
        CHECK(ompx_target_allreduce_nb(result + used * EACH, data + used * EACH, device, EACH,
                                       OMPX_INT64, OMPX_MAX, made[used], &events[used]) == 0);
    }
    for (int i = 0; i < GROUPS; ++i) {
        CHECK(ompx_event_wait(&events[i]) == 0);
    }
    CHECK(wrong(result, device, 0, ranks - 1, LENGTH) == 0);
    for (int i = 0; i < GROUPS; ++i) {
        CHECK(ompx_group_free(&made[i]) == 0);
    }
}

static void kinds(int device) {
    double *const numbers = malloc(sizeof(double) * 100);
    int *const pairs = malloc(sizeof(int) * 200);
#pragma omp target enter data device(device) map(alloc : numbers[0 : 100], pairs[0 : 200])
    int const self = me;
#pragma omp target device(device) map(to : numbers[0 : 100], pairs[0 : 200])
    for (int i = 0; i < 100; ++i) {
        numbers[i] = 1.5 * self;
        pairs[2 * i] = 7 - self % 3;
        pairs[2 * i + 1] = self;
    }
    CHECK(ompx_target_allreduce(numbers, numbers, device, 100, OMPX_DOUBLE, OMPX_AVG,
                                ompx_group_world) == 0);
    CHECK(ompx_target_allreduce(pairs, pairs, device, 100, OMPX_2INT, OMPX_MINLOC,
                                ompx_group_world) == 0);
    double number = 0;
    int pair[2] = {0, 0};
    CHECK(ompx_target_get(&number, host, me, numbers + 99, device, sizeof number) == 0);
    CHECK(ompx_target_get(pair, host, me, pairs + 198, device, sizeof pair) == 0);
    CHECK(number == 1.5 * (ranks - 1) / 2);
    CHECK(pair[0] == (ranks > 2 ? 5 : 7 - (ranks - 1)) && pair[1] == (ranks > 2 ? 2 : ranks - 1));
#pragma omp target exit data device(device) map(delete : numbers[0 : 100], pairs[0 : 200])
    free(numbers);
    free(pairs);
}

/* An operator of the program runs on the hosts. */
static void own_sum(void *inout, const void *in, size_t count, ompx_type_t type, void *context) {
    (void)type;
    (void)context;
    for (size_t i = 0; i < count; ++i) {
        ((int64_t *)inout)[i] += ((const int64_t *)in)[i];
    }
}

static void own_operator(int device) {
    ompx_op_t op;
    CHECK(ompx_op_create(&op, own_sum, NULL, 1) == 0);
    fill(data, device, me, LENGTH);
    CHECK(ompx_target_allreduce(data, data, device, LENGTH, OMPX_INT64, op, ompx_group_world) == 0);
    int64_t got = 0;
    CHECK(ompx_target_get(&got, host, me, data + 9, device, sizeof got) == 0);
    CHECK(got == (int64_t)ranks * (ranks - 1) / 2 * 1000000 + 9 * ranks);
    CHECK(ompx_op_free(&op) == 0);
}

/* Devices of several indices, and of one rank: by the hosts. */
static void mixed(void) {
    int const device = first_device + me % num_devices;
    all_calls(ompx_group_world, device, me, ranks, 3000);
    /* some ranks with memory of the host, or of a local device */
    for (int local = first_device > 0 ? 0 : host; local <= host; local += host > 0 ? host : 1) {
        int const used = me % 2 == 0 ? local : first_device;
        int64_t *const plain = malloc(sizeof(int64_t) * LENGTH);
        int64_t *const buffer = used == host ? plain : data;
        for (int i = 0; i < LENGTH; ++i) {
            plain[i] = value(me, i);
        }
        if (used != host) {
            fill(data, used, me, LENGTH);
        }
        CHECK(ompx_target_bcast(buffer, used, sizeof(int64_t) * LENGTH, ranks - 1,
                                ompx_group_world) == 0);
        CHECK(used == host ? plain[LENGTH - 1] == value(ranks - 1, LENGTH - 1)
                           : wrong(data, used, 0, ranks - 1, LENGTH) == 0);
        free(plain);
        ompx_group_t group;
        ompx_endpoint_t endpoints[MANY];
        for (int i = 0; i < ranks; ++i) {
            endpoints[i] = (ompx_endpoint_t){i, i % 2 == 0 && first_device > 0 ? 0 : first_device};
        }
        int const mine = endpoints[me].device;
        CHECK(ompx_group_create_endpoints(&group, endpoints, ranks) == 0);
        all_calls(group, mine, me, ranks, 3000);
        CHECK(ompx_group_free(&group) == 0);
    }
    if (first_device > 0) {
        return;
    }
    ompx_group_t all;
    CHECK(ompx_group_create_devices(ompx_group_world, &all) == 0);
    int const size = ranks * num_devices;
    CHECK(ompx_group_size(all) == size);
    for (int i = 0; i < num_devices; ++i) {
        fill(data, i, me * num_devices + i, LENGTH);
    }
    CHECK(ompx_target_allreduce(data, data, OMPX_GROUP_DEVICES, LENGTH, OMPX_INT64, OMPX_MAX,
                                all) == 0);
    for (int i = 0; i < num_devices; ++i) {
        CHECK(wrong(data, i, 0, size - 1, LENGTH) == 0);
    }
    CHECK(ompx_group_free(&all) == 0);
}

static void mistakes(int device) {
    int64_t *const unmapped = malloc(64);
    size_t const nbytes = sizeof(int64_t) * LENGTH;
    int const wrong_rank = ranks - 1;
    /* of one rank: the others get an error that names it */
    for (int again = 0; again < 3; ++again) {
        int64_t *const used = me == wrong_rank ? unmapped : data;
        int const code = ompx_target_bcast(used, device, 64, 0, ompx_group_world);
        CHECK(code == OMPX_ERR_ADDRESS);
        char words[64];
        snprintf(words, sizeof words, "rank %d cannot take part", wrong_rank);
        CHECK(strstr(ompx_last_error(), me == wrong_rank ? "neither mapped" : words) != NULL);
        CHECK(ompx_target_allreduce(result, data, device, me == wrong_rank ? LENGTH + 1 : LENGTH,
                                    OMPX_INT64, OMPX_SUM, ompx_group_world) == OMPX_ERR_RANGE);
        ompx_event_t event;
        int const started = ompx_target_bcast_nb(used, device, 64, 0, ompx_group_world, &event);
        CHECK(started == (me == wrong_rank ? OMPX_ERR_ADDRESS : 0));
        CHECK(started != 0 || ompx_event_wait(&event) == OMPX_ERR_ADDRESS);
    }
    CHECK(ompx_target_bcast(data, device, 64, ranks, ompx_group_world) == OMPX_ERR_RANK);
    CHECK(ompx_target_bcast(data, device, me == 0 ? 72000 : 80000, 0, ompx_group_world) ==
          (ranks > 1 ? OMPX_ERR_MISMATCH : 0));
    CHECK(ompx_barrier() == 0);
    CHECK(ompx_target_bcast(data, device, nbytes, 0, ompx_group_world) == 0);
    free(unmapped);
}

int main(int argc, char **argv) {
    me = ompx_rank_num();
    ranks = ompx_num_ranks();
    host = omp_get_initial_device();
    num_devices = argc > 1 ? atoi(argv[1]) : 1;
    first_device = host - num_devices;
    CHECK(first_device >= 0 && ranks < MANY);
    data = malloc(sizeof(int64_t) * LENGTH);
    result = malloc(sizeof(int64_t) * LENGTH);
    for (int device = 0; device < host; ++device) {
#pragma omp target enter data device(device) map(alloc : data[0 : LENGTH], result[0 : LENGTH])
    }
    for (int device = first_device; device < host; ++device) {
        groups(device, 40);
        groups(device, LENGTH);
        order(device);
        many_groups(device);
        kinds(device);
        own_operator(device);
    }
    mixed();
    mistakes(first_device);
    for (int device = 0; device < host; ++device) {
#pragma omp target exit data device(device) map(delete : data[0 : LENGTH], result[0 : LENGTH])
    }
    free(data);
    free(result);
    CHECK(ompx_barrier() == 0);
    if (me == 0) {
        puts("remote collectives: ok");
    }
    return 0;
}
