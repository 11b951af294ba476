/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Memory of remote devices in the address space of a job. Each rank has a remote device and no
 * other; DIOMP_ERRORS=return. */
#include "support/check.h"

#include <omp.h>
#include <stdlib.h>

enum { COUNT = 100000, BYTES = COUNT * sizeof(double), ROWS = 40, COLUMNS = 50 };

#pragma omp declare target
double variable[COUNT];
#pragma omp end declare target

static int me, ranks, right, left, host;

/* TEST_GPUS has a character for each rank: G if its device is a GPU. */
static int has_gpu(int rank) {
    char const *const kinds = getenv("TEST_GPUS");
    return kinds != NULL && kinds[rank] == 'G';
}

static void fill(double *field, double value) {
#pragma omp target
    for (int i = 0; i < COUNT; ++i) {
        field[i] = value + i;
    }
}

static int is_filled(double *field, double value) {
    int wrong = 0;
#pragma omp target map(tofrom : wrong)
    for (int i = 0; i < COUNT; ++i) {
        wrong += field[i] != value + i;
    }
    return wrong == 0;
}

/* Arrays that OpenMP has mapped: their counterparts are those of the other ranks. */
static void mapped_memory(void) {
    double *const from = malloc(BYTES), *const to = malloc(BYTES), *const plain = malloc(BYTES);
#pragma omp target enter data map(alloc : from[0 : COUNT], to[0 : COUNT])
    fill(from, 1000. * me);
    fill(to, -1);
    CHECK(ompx_barrier() == 0);
    /* device to device */
    CHECK(ompx_target_put(right, to, 0, from, 0, BYTES) == 0);
    CHECK(ompx_barrier() == 0);
    CHECK(is_filled(to, 1000. * left));
    CHECK(ompx_barrier() == 0);
    fill(to, -1);
    CHECK(ompx_target_get(to, 0, right, from, 0, BYTES) == 0);
    CHECK(is_filled(to, 1000. * right));
    /* between this rank's memory and the other rank's device */
    memset(plain, 0, BYTES);
    CHECK(ompx_target_get(plain, host, right, from, 0, BYTES) == 0);
    for (int i = 0; i < COUNT; ++i) {
        CHECK(plain[i] == 1000. * right + i);
    }
    CHECK(ompx_barrier() == 0);
    for (int i = 0; i < COUNT; ++i) {
        plain[i] = 7. * me + i;
    }
    CHECK(ompx_target_put(right, to, 0, plain, host, BYTES) == 0);
    CHECK(ompx_barrier() == 0);
    CHECK(is_filled(to, 7. * left));
    CHECK(ompx_barrier() == 0);
    /* small ones, inside, and with events */
    double const eight = 8 + me;
    double got = 0;
    ompx_event_t event;
    CHECK(ompx_target_put_nb(right, to + 77, 0, &eight, host, sizeof eight, &event) == 0);
    CHECK(ompx_event_wait(&event) == 0 && ompx_barrier() == 0);
    CHECK(ompx_target_get_nb(&got, host, me, to + 77, 0, sizeof got, &event) == 0);
    CHECK(ompx_event_wait(&event) == 0 && got == 8 + left);
    CHECK(ompx_target_put(right, to + 5, 0, from + 9, 0, 3 * sizeof *to) == 0);
    CHECK(ompx_fence() == 0 && ompx_barrier() == 0);
    CHECK(ompx_target_get(&got, host, me, to + 7, 0, sizeof got) == 0 && got == 1000. * left + 11);
    /* on the own device */
    CHECK(ompx_target_put(me, to, 0, from, 0, BYTES) == 0 && is_filled(to, 1000. * me));
    fill(to, -1);
    CHECK(ompx_target_get(to, 0, me, from, 0, BYTES) == 0 && is_filled(to, 1000. * me));
    /* what does not exist */
    FAILS(ompx_target_put(right, to, 0, from, 0, BYTES + 8), OMPX_ERR_RANGE, "past the end");
    FAILS(ompx_target_put(right, to + 1, 0, plain, host, BYTES), OMPX_ERR_RANGE, "past the end");
    FAILS(ompx_target_get(plain, host, right, plain, 0, 8), OMPX_ERR_ADDRESS, "neither mapped");
    FAILS(ompx_target_put(ranks, to, 0, from, 0, 8), OMPX_ERR_RANK, "rank");
    FAILS(ompx_target_put(right, to, 3, from, 0, 8), OMPX_ERR_ARG, "3");
    CHECK(ompx_barrier() == 0);
#pragma omp target exit data map(delete : from[0 : COUNT], to[0 : COUNT])
    FAILS(ompx_target_put(right, to, 0, plain, host, 8), OMPX_ERR_ADDRESS, "neither mapped");
    CHECK(ompx_barrier() == 0);
    free(from);
    free(to);
    free(plain);
}

/* Global host memory of another rank, which carries data of a device. */
static void host_memory_of_others(void) {
    double *const shared = omp_alloc(BYTES, ompx_symmetric_mem_alloc);
    double *const field = malloc(BYTES);
#pragma omp target enter data map(alloc : field[0 : COUNT])
    fill(field, 10. * me);
    CHECK(ompx_barrier() == 0);
    CHECK(ompx_target_put(right, shared, host, field, 0, BYTES) == 0);
    CHECK(ompx_barrier() == 0);
    for (int i = 0; i < COUNT; ++i) {
        CHECK(shared[i] == 10. * left + i);
    }
    for (int i = 0; i < COUNT; ++i) {
        shared[i] = 20. * me + i;
    }
    CHECK(ompx_barrier() == 0);
    CHECK(ompx_target_get(field, 0, right, shared, host, BYTES) == 0);
    CHECK(is_filled(field, 20. * right));
    CHECK(ompx_barrier() == 0);
#pragma omp target exit data map(delete : field[0 : COUNT])
    free(field);
    omp_free(shared, ompx_symmetric_mem_alloc);
}

/* Memory of ompx_target_alloc, and boxes in it. */
static void allocated_memory(void) {
    double *const box = ompx_target_alloc(BYTES, 0, ompx_symmetric_mem_alloc);
    double *const block = ompx_target_alloc(64 * (size_t)(me + 1), 0, ompx_asymmetric_mem_alloc);
    double *const local = ompx_target_alloc(BYTES, 0, ompx_local_mem_alloc);
    double *const plain = calloc(COUNT, sizeof *plain);
    CHECK(box != NULL && block != NULL && local != NULL);
    ompx_segment_info_t info;
    CHECK(ompx_target_segment_info(0, &info) == 0 && info.symmetric_used >= BYTES);
#pragma omp target is_device_ptr(box, local)
    for (int i = 0; i < COUNT; ++i) {
        box[i] = -1;
        local[i] = 100 * me + i;
    }
    CHECK(ompx_barrier() == 0);
    size_t const shape[2] = {ROWS, COLUMNS / 2}, there[2] = {3, 4}, here[2] = {1, 2};
    size_t const sizes[2] = {ROWS + 9, COLUMNS + 1}, local_sizes[2] = {ROWS + 2, COLUMNS};
    CHECK(ompx_target_put_rect(right, box, 0, local, 0, sizeof *box, 2, shape, there, here, sizes,
                               local_sizes) == 0);
    CHECK(ompx_barrier() == 0);
    CHECK(ompx_target_get(plain, host, me, box, 0, BYTES) == 0);
    for (size_t i = 0; i < COUNT; ++i) {
        size_t const row = i / sizes[1], column = i % sizes[1];
        int const is_inside = row >= 3 && row < 3 + ROWS && column >= 4 && column < 4 + COLUMNS / 2;
        double const expected =
            is_inside ? (double)(100 * (size_t)left + (row - 3 + 1) * COLUMNS + column - 4 + 2)
                      : -1;
        CHECK(plain[i] == expected);
    }
    CHECK(ompx_barrier() == 0);
    memset(plain, 0, BYTES);
    CHECK(ompx_target_get_rect(plain, host, right, box, 0, sizeof *box, 2, shape, here, there,
                               local_sizes, sizes) == 0);
    for (size_t row = 0; row < ROWS; ++row) {
        CHECK(plain[(row + 1) * COLUMNS + 2] == 100. * me + (double)((row + 1) * COLUMNS + 2));
    }
    /* blocks of different sizes */
    CHECK(ompx_target_put(right, block, 0, local + me, 0, 64) == 0);
    if (right > me) {
        CHECK(ompx_target_put(right, block, 0, local, 0, 64 * (size_t)(right + 1)) == 0);
    } else {
        FAILS(ompx_target_put(right, block, 0, local, 0, 64 * (size_t)(me + 1)), OMPX_ERR_RANGE,
              "past the end");
    }
    CHECK(ompx_barrier() == 0);
    /* An address of another rank, which only processors have each to themselves. */
    double *theirs[16];
    CHECK(ranks <= 16 && ompx_allgather(theirs, &local, sizeof local, ompx_group_world) == 0);
    if (!has_gpu(right) && !has_gpu(me)) {
        memset(plain, 0, BYTES);
        CHECK(ompx_target_get(plain, host, right, theirs[right], 0, BYTES) == 0);
        CHECK(plain[0] == 100. * right && plain[COUNT - 1] == plain[0] + (double)(COUNT - 1));
        CHECK(plain[9] == 100. * right + 9 || plain[9] == 100. * ((right + 1) % ranks) + 5);
        CHECK(ompx_target_get(local + 9, 0, right, theirs[right] + 5, 0, 8) == 0);
        CHECK(ompx_target_get(plain, host, me, local + 9, 0, 16) == 0);
        CHECK(plain[0] == 100. * right + 5 && plain[1] == 100. * me + 10);
        FAILS(ompx_target_get(plain, host, right, theirs[right] + 1, 0, BYTES), OMPX_ERR_RANGE,
              "past the end");
        if (ranks > 2) {
            FAILS(ompx_target_get(plain, host, left, theirs[right], 0, 8), OMPX_ERR_ADDRESS,
                  "no allocation of rank");
        }
    }
    CHECK(ompx_barrier() == 0);
    CHECK(ompx_target_free(block, 0) == 0 && ompx_target_free(local, 0) == 0);
    if (!has_gpu(right) && !has_gpu(me)) {
        CHECK(ompx_barrier() == 0);
        FAILS(ompx_target_get(plain, host, right, theirs[right], 0, 8), OMPX_ERR_ADDRESS,
              "no allocation of rank");
    }
    CHECK(ompx_target_free(box, 0) == 0);
    FAILS(ompx_target_free(box, 0), OMPX_ERR_ADDRESS, "freed before");
    CHECK(ompx_barrier() == 0);
    free(plain);
}

/* Regions that OpenMP need not wait for are complete before another rank gets their results. */
static void regions_without_waiting(void) {
    enum { FEW = 64 };
    for (int round = 0; round < 20; ++round) {
        double *const field = malloc(FEW * sizeof *field);
        double got[FEW];
#pragma omp target enter data map(alloc : field[0 : FEW])
        for (int step = 0; step < 10; ++step) {
#pragma omp target nowait depend(inout : field[0])
            for (int i = 0; i < FEW; ++i) {
                field[i] = 1000 * me + round + step + i;
            }
        }
#pragma omp taskwait
        /* this rank's own device, before any other rank has asked about it */
        CHECK(ompx_target_get(got, host, me, field, 0, sizeof got) == 0);
        CHECK(got[0] == 1000 * me + round + 9 && got[FEW - 1] == got[0] + (double)(FEW - 1));
        CHECK(ompx_barrier() == 0);
        CHECK(ompx_target_get(got, host, right, field, 0, sizeof got) == 0);
        for (int i = 0; i < FEW; ++i) {
            CHECK(got[i] == 1000 * right + round + 9 + i);
        }
        CHECK(ompx_barrier() == 0);
#pragma omp target exit data map(delete : field[0 : FEW])
        free(field);
    }
}

/* Memory that was freed and allocated again, and large enough that its pages were returned. */
static void reused_memory(void) {
    size_t const nbytes = (size_t)40 << 20;
    char *const plain = malloc(nbytes);
    for (int round = 0; round < 3; ++round) {
        char *const large = ompx_target_alloc(nbytes, 0, ompx_symmetric_mem_alloc);
        CHECK(large != NULL);
        memset(plain, 1 + round + me, nbytes);
        CHECK(ompx_target_put(right, large, 0, plain, host, nbytes) == 0);
        CHECK(ompx_barrier() == 0);
        CHECK(ompx_target_get(plain, host, me, large, 0, nbytes) == 0);
        CHECK(plain[0] == 1 + round + left && plain[nbytes - 1] == 1 + round + left);
        CHECK(memcmp(plain, plain + 1, nbytes - 1) == 0);
        CHECK(ompx_target_free(large, 0) == 0);
    }
    free(plain);
}

/* Variables of images, from and to which the ranks copy. */
static void variables(void) {
    double *const plain = malloc(BYTES), *const field = malloc(BYTES);
#pragma omp target enter data map(alloc : field[0 : COUNT])
    fill(field, 3. * me);
    for (int i = 0; i < COUNT; ++i) {
        plain[i] = 5. * me + i;
    }
    CHECK(ompx_target_put(right, variable, 0, plain, host, BYTES) == 0);
    CHECK(ompx_barrier() == 0);
    int wrong = 0;
#pragma omp target map(tofrom : wrong)
    for (int i = 0; i < COUNT; ++i) {
        wrong += variable[i] != 5. * left + i;
        variable[i] += 1;
    }
    CHECK(wrong == 0);
    CHECK(ompx_barrier() == 0);
    CHECK(ompx_target_get(field, 0, right, variable, 0, BYTES) == 0);
    CHECK(is_filled(field, 5. * me + 1));
    CHECK(ompx_barrier() == 0);
    fill(field, 9. * me);
    CHECK(ompx_target_put(right, variable, 0, field, 0, BYTES) == 0);
    CHECK(ompx_barrier() == 0);
    CHECK(ompx_target_get(plain, host, me, variable, 0, BYTES) == 0);
    CHECK(plain[0] == 9. * left && plain[COUNT - 1] == plain[0] + (double)(COUNT - 1));
    CHECK(ompx_barrier() == 0);
    CHECK(ompx_target_bcast(variable, 0, BYTES, 0, ompx_group_world) == 0);
    CHECK(ompx_target_get(field, 0, me, variable, 0, BYTES) == 0);
    CHECK(is_filled(field, 9. * (ranks - 1)));
    FAILS(ompx_target_put(right, variable + 1, 0, plain, host, BYTES), OMPX_ERR_RANGE, "variable");
    CHECK(ompx_barrier() == 0);
#pragma omp target exit data map(delete : field[0 : COUNT])
    free(field);
    free(plain);
}

/* Regions that OpenMP treats as complete before they are, and that the session has not
 * acknowledged: the first access of another rank waits for them. Before any other access. */
static void deferred_regions(void) {
    enum { SHORT = 4 };
    static long words[COUNT];
#pragma omp target enter data map(alloc : words)
    for (int i = 0; i < 6; ++i) { /* the first ones are not deferred: their time is unknown */
        int const end = i < 5 ? SHORT : COUNT;
        long const value = 10 * me + i;
#pragma omp target nowait firstprivate(value, end)
        for (int k = 0; k < end; ++k) {
            words[k] = value;
        }
#pragma omp taskwait
    }
    CHECK(ompx_barrier() == 0);
    long got = -1;
    CHECK(ompx_target_get(&got, host, right, &words[COUNT - 1], 0, sizeof got) == 0);
    CHECK(got == 10 * right + 5);
    CHECK(ompx_barrier() == 0);
#pragma omp target exit data map(release : words)
}

static void paths(void) {
    char const *const wish = getenv("DIOMP_NETWORK");
    char const *const size = getenv("DIOMP_NODE_SIZE");
    int const by_ucx = wish != NULL && strcmp(wish, "ucx") == 0;
    int const is_own_shared = !by_ucx && size == NULL;
    int const by_host = getenv("TEST_HOSTS") != NULL; /* one rank, and its device, on each */
    int const node_size = by_ucx || by_host ? 1 : size == NULL ? ranks : atoi(size);
    int num_gpus = 0;
    for (int rank = 0; rank < ranks; ++rank) {
        num_gpus += has_gpu(rank);
    }
    for (int rank = 0; rank < ranks; ++rank) {
        char text[1024], device[64], between[64];
        CHECK(ompx_path_info(rank, text, sizeof text) == 0);
        snprintf(device, sizeof device, "; remote device 0 by %s",
                 is_own_shared && (!by_host || rank == me) ? "shm"
                 : by_ucx                                  ? "ucx"
                                                           : "tcp");
        snprintf(between, sizeof between, "; from own remote devices by %s%s",
                 me / node_size == rank / node_size ? "shm"
                 : by_ucx                           ? "ucx"
                                                    : "tcp",
                 is_own_shared && !has_gpu(me) ? "" : ", service to service");
        if (has_gpu(rank)) { /* their ranks copy to and from hosts */
            snprintf(device, sizeof device, "; remote device 0 by rank %d", rank);
        }
        if ((has_gpu(rank) || has_gpu(me)) && num_gpus < ranks) {
            CHECK(strstr(text, "service to service") == NULL);
            between[0] = 0;
        }
        CHECK(strstr(text, device) != NULL && strstr(text, between) != NULL);
        CHECK(strstr(text, "remote device 1") == NULL);
    }
    char cut[8];
    CHECK(ompx_path_info(right, cut, sizeof cut) == 0 && strlen(cut) == sizeof cut - 1);
}

int main(int argc, char **argv) {
    me = ompx_rank_num();
    ranks = ompx_num_ranks();
    right = (me + 1) % ranks;
    left = (me + ranks - 1) % ranks;
    host = omp_get_initial_device();
    CHECK(ranks > 1 && omp_get_num_devices() == 1);
    if (argc > 1 && strcmp(argv[1], "deferred") == 0) {
        deferred_regions();
    } else {
        regions_without_waiting(); /* first: later ones are waited for */
        mapped_memory();
        host_memory_of_others();
        allocated_memory();
        reused_memory();
        variables();
        paths();
    }
    CHECK(ompx_barrier() == 0);
    if (me == 0) {
        puts("remote space: ok");
    }
    return 0;
}
