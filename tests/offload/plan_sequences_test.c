/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Random sequences of regions and updates, recorded and launched several times, against a model of
 * both memories on the host. Usage: plan_sequences_test SEQUENCES [FIRST_SEED] */
#include "support/check.h"

#include <omp.h>
#include <stdlib.h>

enum { ARRAYS = 4, MAX_OPERATIONS = 25, LAUNCHES = 6 };

struct world {
    unsigned long *host[ARRAYS];
    unsigned long *model_host[ARRAYS];
    unsigned long *model_device[ARRAYS];
    int length[ARRAYS];
};

enum kind { REGION, TO_DEVICE, TO_HOST };

struct operation {
    enum kind kind;
    int array, other;
    int begin, count;
    unsigned long add;
};

static int device;
static unsigned seed;

static int random_below(int limit) { return rand_r(&seed) % limit; }

static void combine(unsigned long *array, int length, const unsigned long *other, int other_length,
                    unsigned long add) {
#pragma omp target device(device) map(alloc : array[0 : length], other[0 : other_length])
    for (int i = 0; i < length; ++i) {
        array[i] = array[i] * 3 + other[i % other_length] + add;
    }
}

static void execute(const struct world *w, const struct operation *what) {
    unsigned long *const array = w->host[what->array];
    int const begin = what->begin, count = what->count;
    switch (what->kind) {
    case REGION:
        combine(array, w->length[what->array], w->host[what->other], w->length[what->other],
                what->add);
        break;
    case TO_DEVICE: {
#pragma omp target update device(device) to(array[begin : count])
        break;
    }
    case TO_HOST: {
#pragma omp target update device(device) from(array[begin : count])
        break;
    }
    }
}

static void execute_in_model(const struct world *w, const struct operation *what) {
    unsigned long *const on_device = w->model_device[what->array] + what->begin;
    unsigned long *const on_host = w->model_host[what->array] + what->begin;
    size_t const nbytes = sizeof(unsigned long) * (size_t)what->count;
    switch (what->kind) {
    case REGION: {
        unsigned long *const array = w->model_device[what->array];
        for (int i = 0; i < w->length[what->array]; ++i) {
            array[i] =
                array[i] * 3 + w->model_device[what->other][i % w->length[what->other]] + what->add;
        }
        break;
    }
    case TO_DEVICE:
        memcpy(on_device, on_host, nbytes);
        break;
    case TO_HOST:
        memcpy(on_host, on_device, nbytes);
        break;
    }
}

static struct operation random_operation(const struct world *w) {
    struct operation made;
    made.kind = (enum kind)random_below(3);
    made.array = random_below(ARRAYS);
    made.other = (made.array + 1 + random_below(ARRAYS - 1)) % ARRAYS;
    made.begin = random_below(w->length[made.array]);
    made.count = 1 + random_below(w->length[made.array] - made.begin);
    made.add = (unsigned long)random_below(7);
    return made;
}

static void enter(struct world *w) {
    for (int a = 0; a < ARRAYS; ++a) {
        int const length = w->length[a] = 1 + random_below(random_below(2) == 0 ? 50 : 20000);
        size_t const nbytes = sizeof(unsigned long) * (size_t)length;
        unsigned long *const array = w->host[a] = malloc(nbytes);
        w->model_host[a] = malloc(nbytes);
        w->model_device[a] = malloc(nbytes);
        for (int i = 0; i < length; ++i) {
            array[i] = w->model_host[a][i] = w->model_device[a][i] =
                (unsigned long)random_below(1000);
        }
#pragma omp target enter data device(device) map(to : array[0 : length])
    }
}

static void leave(struct world *w) {
    for (int a = 0; a < ARRAYS; ++a) {
        unsigned long *const array = w->host[a];
        int const length = w->length[a];
#pragma omp target exit data device(device) map(from : array[0 : length])
        CHECK(memcmp(array, w->model_device[a], sizeof(unsigned long) * (size_t)length) == 0);
        free(array);
        free(w->model_host[a]);
        free(w->model_device[a]);
    }
}

static void run_sequence(void) {
    struct world w;
    struct operation operations[MAX_OPERATIONS];
    int const count = 1 + random_below(MAX_OPERATIONS);
    enter(&w);
    for (int i = 0; i < count; ++i) {
        operations[i] = random_operation(&w);
    }
    ompx_plan_t plan;
    CHECK(ompx_plan_begin(device) == 0);
    for (int i = 0; i < count; ++i) {
        execute(&w, &operations[i]);
    }
    CHECK(ompx_plan_end(&plan) == 0);
    for (int launch = 0; launch <= LAUNCHES; ++launch) { /* the first one is the recording */
        ompx_event_t event = NULL;
        if (launch > 0 && launch % 2 == 0) {
            CHECK(ompx_plan_launch(plan) == 0);
        } else if (launch > 0) {
            CHECK(ompx_plan_launch_nb(plan, &event) == 0);
            CHECK(ompx_event_wait(&event) == 0);
        }
        for (int i = 0; i < count; ++i) {
            execute_in_model(&w, &operations[i]);
        }
        for (int a = 0; a < ARRAYS; ++a) {
            CHECK(memcmp(w.host[a], w.model_host[a], sizeof(unsigned long) * (size_t)w.length[a]) ==
                  0);
        }
        for (int a = 0; a < ARRAYS; ++a) {
            w.host[a][0] = w.model_host[a][0] = (unsigned long)random_below(1000);
        }
    }
    CHECK(ompx_plan_free(&plan) == 0);
    leave(&w);
}

int main(int argc, char **argv) {
    int const sequences = argc > 1 ? atoi(argv[1]) : 100;
    unsigned const first = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
    device = ompx_rank_device(0);
    for (int i = 0; i < sequences; ++i) {
        seed = first + (unsigned)i;
        run_sequence();
    }
    if (ompx_rank_num() == 0) {
        printf("sequences: ok\n");
    }
    return 0;
}
