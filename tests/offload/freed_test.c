/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Device memory that is freed or unmapped while own transfers use it: what gets the same memory
 * afterwards is not written to, and what was sent is what was there. Between nodes the transfers
 * are under way then. */
#include "support/check.h"

#include <omp.h>
#include <stdint.h>
#include <stdlib.h>

enum { LENGTH = 6 << 20, TAIL = 1000 }; /* 48 MiB: on its way for longer than freeing takes */
#define BYTES (sizeof(int64_t) * LENGTH)

static int me, ranks, next, previous, host;
static int64_t *inbox; /* symmetric */

static void meet(void) {
    CHECK(ompx_fence() == 0);
    CHECK(ompx_barrier() == 0);
}

static void fill(int64_t *array, int64_t with) {
    for (int i = 0; i < LENGTH; ++i) {
        array[i] = with + i;
    }
}

/* Of the device's array, the part that arrives and leaves last. */
static void fill_tail(int64_t *array, int64_t with) {
#pragma omp target is_device_ptr(array)
    for (int i = LENGTH - TAIL; i < LENGTH; ++i) {
        array[i] = with + i;
    }
}

static int wrong_in_tail(int64_t *array, int64_t with) {
    int wrong = 0;
#pragma omp target is_device_ptr(array) map(tofrom : wrong)
    for (int i = LENGTH - TAIL; i < LENGTH; ++i) {
        wrong += array[i] != with + i;
    }
    return wrong;
}

typedef int64_t *(*make_function)(void);
typedef void (*free_function)(int64_t *);

static int64_t *make_openmp(void) { return omp_target_alloc(BYTES, 0); }
static void free_openmp(int64_t *array) { omp_target_free(array, 0); }
static int64_t *make_ours(void) { return ompx_target_alloc(BYTES, 0, ompx_local_mem_alloc); }
static void free_ours(int64_t *array) { CHECK(ompx_target_free(array, 0) == 0); }

/* The next allocation has the memory of the last one. */
static int64_t *make_again(make_function make, const int64_t *before) {
    int64_t *const made = make();
    CHECK(made == before);
    return made;
}

static void received(make_function make, free_function give_back, int with_event) {
    fill(inbox, 1000 * me);
    int64_t *const target = make();
    CHECK(target != NULL);
    meet();
    ompx_event_t event = NULL;
    CHECK(ompx_target_get_nb(target, 0, next, inbox, host, BYTES, with_event ? &event : NULL) == 0);
    give_back(target);
    int64_t *const other = make_again(make, target);
    fill_tail(other, -7);
    CHECK(with_event ? ompx_event_wait(&event) == 0 : ompx_fence() == 0);
    CHECK(wrong_in_tail(other, -7) == 0);
    give_back(other);
    meet();
}

static void sent(make_function make, free_function give_back, int with_event) {
    int64_t *const source = make();
    CHECK(source != NULL);
    fill_tail(source, 5000 * me);
    meet();
    ompx_event_t event = NULL;
    CHECK(ompx_target_put_nb(next, inbox, host, source, 0, BYTES, with_event ? &event : NULL) == 0);
    give_back(source);
    int64_t *const other = make_again(make, source);
    fill_tail(other, -9);
    CHECK(with_event ? ompx_event_wait(&event) == 0 : ompx_fence() == 0);
    meet();
    for (int i = LENGTH - TAIL; i < LENGTH; ++i) {
        CHECK(inbox[i] == 5000 * previous + i);
    }
    give_back(other);
    meet();
}

/* Registered memory of the other rank goes in messages. */
static void from_registered_memory(void) {
    int64_t *const mine = malloc(BYTES);
    fill(mine, 300 * me);
    CHECK(ompx_register(mine, BYTES) == 0);
    static int64_t *all[64];
    CHECK(ranks <= 64);
    CHECK(ompx_allgather(all, &mine, sizeof(mine), NULL) == 0);
    int64_t *const target = make_openmp();
    meet();
    ompx_event_t event = NULL;
    CHECK(ompx_target_get_nb(target, 0, next, all[next], host, BYTES, &event) == 0);
    free_openmp(target);
    int64_t *const other = make_again(make_openmp, target);
    fill_tail(other, -11);
    CHECK(ompx_event_wait(&event) == 0);
    CHECK(wrong_in_tail(other, -11) == 0);
    free_openmp(other);
    meet();
    CHECK(ompx_unregister(mine) == 0);
    free(mine);
}

/* Memory that libomptarget got elsewhere, since the segment has no room for it. */
static void beyond_the_segment(void) {
    size_t const nbytes = (size_t)200 << 20;
    char *const large = malloc(nbytes);
    int64_t *const end = (int64_t *)(large + nbytes - BYTES);
    fill(inbox, 40 * me);
#pragma omp target enter data map(alloc : large[0 : nbytes])
    meet();
    ompx_event_t event = NULL;
    CHECK(ompx_target_get_nb(end, 0, next, inbox, host, BYTES, &event) == 0);
#pragma omp target exit data map(release : large[0 : nbytes])
    int is_complete = 0;
    CHECK(ompx_event_test(&event, &is_complete) == 0);
    CHECK(is_complete); /* when the memory went */
    free(large);
    meet();
}

int main(void) {
    me = ompx_rank_num();
    ranks = ompx_num_ranks();
    next = (me + 1) % ranks;
    previous = (me + ranks - 1) % ranks;
    host = omp_get_initial_device();
    inbox = ompx_alloc(BYTES, 0, OMPX_MEM_SYMMETRIC);
    CHECK(inbox != NULL);
    for (int with_event = 0; with_event < 2; ++with_event) {
        received(make_openmp, free_openmp, with_event);
        received(make_ours, free_ours, with_event);
        sent(make_openmp, free_openmp, with_event);
        sent(make_ours, free_ours, with_event);
    }
    from_registered_memory();
    beyond_the_segment();
    ompx_free(inbox);
    return 0;
}
