/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Plans: target regions and updates that are launched again. Runs with DIOMP_ERRORS=return on
 * devices of each kind, on 1 rank or more. Usage: plan_test [calls]: regions that communicate too.
 */
#include "support/check.h"

#include <omp.h>
#include <pthread.h>
#include <stdlib.h>

enum { N = 1000, STEPS = 20 };

static int device;
static double next[N], now[N];
static long sum;

#pragma omp declare target
long counter;
#pragma omp end declare target

static ompx_plan_t ended(void) {
    ompx_plan_t plan = OMPX_PLAN_NONE;
    CHECK(ompx_plan_end(&plan) == 0);
    CHECK(plan != OMPX_PLAN_NONE);
    return plan;
}

static void smooth(double *to, const double *from) {
#pragma omp target teams distribute parallel for device(device) map(to : from[0 : N])              \
    map(from : to[0 : N])
    for (int i = 1; i < N - 1; ++i) {
        to[i] = from[i] + 0.25 * (from[i - 1] - 2 * from[i] + from[i + 1]);
    }
}

/* A time loop of two regions with changing roles, against the same on the host. */
static void time_loop(void) {
    static double a[N], b[N];
    for (int i = 0; i < N; ++i) {
        a[i] = now[i] = i % 17;
        b[i] = next[i] = 0;
    }
#pragma omp target data device(device) map(tofrom : now, next)
    {
        CHECK(ompx_plan_begin(device) == 0);
        smooth(next, now);
        smooth(now, next);
        ompx_plan_t step = ended();
        for (int i = 1; i < STEPS; ++i) {
            CHECK(ompx_plan_launch(step) == 0);
        }
        CHECK(ompx_plan_free(&step) == 0);
        CHECK(step == OMPX_PLAN_NONE);
    }
    for (int step = 0; step < STEPS; ++step) {
        for (int i = 1; i < N - 1; ++i) {
            b[i] = a[i] + 0.25 * (a[i - 1] - 2 * a[i] + a[i + 1]);
        }
        for (int i = 1; i < N - 1; ++i) {
            a[i] = b[i] + 0.25 * (b[i - 1] - 2 * b[i] + b[i + 1]);
        }
    }
    CHECK(memcmp(a, now, sizeof a) == 0 && memcmp(b, next, sizeof b) == 0);
}

/* Scalars keep the values of the recording; updates read and write the host's present values. */
static void values_and_updates(void) {
    static int data[N];
    int factor = 3, shift[4] = {1, 2, 3, 4};
#pragma omp target data device(device) map(tofrom : data, shift, sum)
    {
        for (int i = 0; i < N; ++i) {
            data[i] = i;
        }
        CHECK(ompx_plan_begin(device) == 0);
#pragma omp target update device(device) to(data, shift[1 : 2])
#pragma omp target teams distribute parallel for device(device) firstprivate(factor)
        for (int i = 0; i < N; ++i) {
            data[i] = data[i] * factor + shift[1] + shift[2] + shift[3];
        }
#pragma omp target teams distribute parallel for device(device) reduction(+ : sum)
        for (int i = 0; i < N; ++i) {
            sum += data[i];
        }
#pragma omp target update device(device) from(data, sum)
        ompx_plan_t plan = ended();
        for (int i = 0; i < N; ++i) {
            CHECK(data[i] == 3 * i + 9);
        }
        factor = 100;
        long expected = sum;
        for (int round = 0; round < 3; ++round) {
            for (int i = 0; i < N; ++i) {
                data[i] = i + round;
            }
            shift[1] = 20 + round;
            shift[3] = 1000; /* not part of the update */
            CHECK(ompx_plan_launch(plan) == 0);
            for (int i = 0; i < N; ++i) {
                CHECK(data[i] == 3 * (i + round) + 20 + round + 3 + 4);
                expected += data[i];
            }
            CHECK(sum == expected);
        }
        CHECK(ompx_plan_free(&plan) == 0);
    }
}

/* Launches by several threads, of one plan and of several. */
/* Updates in the middle: the host's memory is what the constructs would find at each step. */
static void updates_between(int count) {
    enum { ROUNDS = 50 };
    int *const data = malloc(sizeof(int) * (size_t)count);
    int *const halo = malloc(sizeof(int) * (size_t)count);
    for (int i = 0; i < count; ++i) {
        data[i] = halo[i] = 0;
    }
#pragma omp target data device(device) map(to : data[0 : count], halo[0 : count])
    {
        ompx_plan_t plan;
        CHECK(ompx_plan_begin(device) == 0);
#pragma omp target update device(device) from(data[0 : count])
#pragma omp target device(device)
        for (int i = 0; i < count; ++i) {
            data[i] += 1;
            halo[i] = data[i];
        }
#pragma omp target update device(device) from(halo[0 : count])
#pragma omp target device(device)
        for (int i = 0; i < count; ++i) {
            halo[i] = -1000;
        }
#pragma omp target update device(device) to(halo[0 : count])
        plan = ended();
        for (int round = 1; round <= ROUNDS; ++round) {
            ompx_event_t event = NULL;
            if (round % 2 == 0) {
                CHECK(ompx_plan_launch(plan) == 0);
            } else {
                CHECK(ompx_plan_launch_nb(plan, &event) == 0);
                CHECK(ompx_event_wait(&event) == 0);
            }
            CHECK(data[0] == round && data[count - 1] == round);
            CHECK(halo[0] == round + 1 && halo[count - 1] == round + 1);
        }
        CHECK(ompx_plan_free(&plan) == 0);
#pragma omp target update device(device) from(halo[0 : count])
        CHECK(halo[0] == ROUNDS + 1 && halo[count - 1] == ROUNDS + 1);
    }
    free(data);
    free(halo);
}

static void threads(void) {
    enum { THREADS = 4, ROUNDS = 50 };
    long counts[THREADS] = {0};
    ompx_plan_t plans[THREADS], shared;
#pragma omp target update device(device) to(counter)
#pragma omp target data device(device) map(tofrom : counts)
    {
        for (int t = 0; t < THREADS; ++t) {
            CHECK(ompx_plan_begin(device) == 0);
#pragma omp target device(device)
            counts[t] += 1;
            plans[t] = ended();
        }
        CHECK(ompx_plan_begin(device) == 0);
#pragma omp target device(device)
        {
#pragma omp atomic
            counter += 1;
        }
        shared = ended();
#pragma omp parallel num_threads(THREADS)
        for (int i = 0; i < ROUNDS; ++i) {
            CHECK(ompx_plan_launch(plans[omp_get_thread_num()]) == 0);
            CHECK(ompx_plan_launch(shared) == 0);
        }
        for (int t = 0; t < THREADS; ++t) {
            CHECK(ompx_plan_free(&plans[t]) == 0);
        }
        CHECK(ompx_plan_free(&shared) == 0);
    }
#pragma omp target update device(device) from(counter)
    for (int t = 0; t < THREADS; ++t) {
        CHECK(counts[t] == ROUNDS + 1);
    }
    CHECK(counter == THREADS * ROUNDS + 1);
}

/* Several plans in flight; one is freed meanwhile. */
static void without_waiting(void) {
    enum { PLANS = 6, ROUNDS = 40 };
    long counts[PLANS][8] = {{0}}, copies[PLANS][8];
    ompx_plan_t plans[PLANS];
    ompx_event_t events[PLANS], none = NULL;
#pragma omp target data device(device) map(tofrom : counts)
    {
        for (int p = 0; p < PLANS; ++p) {
            CHECK(ompx_plan_begin(device) == 0);
            for (int half = 0; half < 2; ++half) {
#pragma omp target device(device)
                for (int i = 4 * half; i < 4 * half + 4; ++i) {
                    counts[p][i] += p + i;
                }
            }
#pragma omp target update device(device) from(counts[p : 1])
            plans[p] = ended();
        }
        for (int round = 1; round <= ROUNDS; ++round) {
            for (int p = 0; p < PLANS; ++p) {
                events[p] = NULL;
                CHECK(ompx_plan_launch_nb(plans[p], &events[p]) == 0);
            }
            if (round == ROUNDS) {
                CHECK(ompx_plan_free(&plans[0]) == 0);
            }
            int done = 0;
            while (!done) {
                CHECK(ompx_event_test(&events[PLANS - 1], &done) == 0);
            }
            CHECK(ompx_event_wait_all(events, PLANS) == 0);
            memcpy(copies, counts, sizeof copies);
            for (int p = 0; p < PLANS; ++p) {
                CHECK(copies[p][0] == (long)p * (round + 1));
                CHECK(copies[p][7] == (long)(p + 7) * (round + 1));
            }
        }
        FAILS(ompx_plan_launch_nb(plans[0], &none), OMPX_ERR_ARG, "not a plan");
        FAILS(ompx_plan_launch_nb(plans[1], NULL), OMPX_ERR_ARG, "null pointer");
    }
    FAILS(ompx_plan_launch_nb(plans[1], &none), OMPX_ERR_STATE, "freed or unmapped");
    for (int p = 1; p < PLANS; ++p) {
        CHECK(ompx_plan_free(&plans[p]) == 0);
    }
}

static void touch(void) {
#pragma omp target device(device) map(alloc : now)
    now[0] += 1;
}

static void *touch_elsewhere(void *unused) {
    touch();
    return unused;
}

static ompx_plan_t of_two_regions;

static void *launch_elsewhere(void *unused) {
    CHECK(ompx_plan_launch(of_two_regions) == 0);
    return unused;
}

static void *begin_only(void *unused) {
    CHECK(ompx_plan_begin(device) == 0);
    touch();
    return unused;
}

static void *begin_elsewhere(void *unused) {
    FAILS(ompx_plan_begin(device), OMPX_ERR_STATE, "another thread records");
    FAILS(ompx_plan_end(NULL), OMPX_ERR_STATE, "records no plan");
    return unused;
}

static void in_thread(void *(*what)(void *)) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, what, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

struct holder {
    double *data;
    int other;
};

/* What is executed although it cannot be recorded: the plan is refused, the work has been done. */
static void refused(void) {
    ompx_plan_t plan = OMPX_PLAN_NONE;
    double own[64];
    for (int i = 0; i < 64; ++i) {
        own[i] = i;
    }
    CHECK(ompx_plan_begin(device) == 0);
    touch();
#pragma omp target device(device) map(tofrom : own)
    own[3] = 5;
    FAILS(ompx_plan_end(&plan), OMPX_ERR_UNSUPPORTED, "was allocated or freed");
    CHECK(plan == OMPX_PLAN_NONE && own[3] == 5);

    CHECK(ompx_plan_begin(device) == 0);
    touch();
#pragma omp target device(device) map(always, tofrom : now)
    now[1] += 1;
    FAILS(ompx_plan_end(&plan), OMPX_ERR_UNSUPPORTED, "by other means than target update");

    CHECK(ompx_plan_begin(device) == 0);
    touch();
    in_thread(touch_elsewhere);
    in_thread(begin_elsewhere);
    FAILS(ompx_plan_end(&plan), OMPX_ERR_UNSUPPORTED, "another thread used device");

    /* Another thread's plan, too. */
    CHECK(ompx_plan_begin(device) == 0);
    touch();
    touch();
    of_two_regions = ended();
    CHECK(ompx_plan_begin(device) == 0);
    touch();
    in_thread(launch_elsewhere);
    FAILS(ompx_plan_end(&plan), OMPX_ERR_UNSUPPORTED, "another thread used device");
    CHECK(ompx_plan_free(&of_two_regions) == 0);

    CHECK(ompx_plan_begin(device) == 0);
    touch();
#pragma omp target device(device) nowait map(alloc : now)
    now[2] += 1;
#pragma omp taskwait
    FAILS(ompx_plan_end(&plan), OMPX_ERR_UNSUPPORTED, "another thread used device");

    CHECK(ompx_plan_begin(device) == 0);
    touch();
    CHECK(ompx_fence() == 0);
    FAILS(ompx_plan_end(&plan), OMPX_ERR_UNSUPPORTED, "ompx_fence");

    uint64_t *word = omp_alloc(sizeof *word, ompx_symmetric_mem_alloc);
    uint64_t one = 1;
    CHECK(word != NULL && ompx_put(ompx_get_rank_num(), word, &one, sizeof one) == 0);
    CHECK(ompx_plan_begin(device) == 0);
    touch();
    CHECK(ompx_put(ompx_get_rank_num(), word, &one, sizeof one) == 0);
    FAILS(ompx_plan_end(&plan), OMPX_ERR_UNSUPPORTED, "ompx_put was called");
    CHECK(ompx_put(ompx_get_rank_num(), word, &one, sizeof one) == 0);
    omp_free(word, ompx_symmetric_mem_alloc);

    struct holder held = {own, 7};
#pragma omp target enter data device(device) map(to : held)
    CHECK(ompx_plan_begin(device) == 0);
#pragma omp target update device(device) from(held)
    ompx_plan_t before = ended();
    CHECK(ompx_plan_launch(before) == 0);
#pragma omp target enter data device(device) map(to : held.data[0 : 64])
    FAILS(ompx_plan_launch(before), OMPX_ERR_STATE, "has attached pointers");
    CHECK(held.data == own && ompx_plan_free(&before) == 0);
#pragma omp target exit data device(device) map(release : held.data[0 : 64])
#pragma omp target exit data device(device) map(release : held)
    held.data = now;
#pragma omp target data device(device) map(tofrom : held) map(alloc : held.data[0 : N])
    {
#pragma omp target device(device) map(alloc : held) map(alloc : held.data[0 : N])
        held.other = 8;
        CHECK(ompx_plan_begin(device) == 0);
        touch();
#pragma omp target update device(device) from(held)
        FAILS(ompx_plan_end(&plan), OMPX_ERR_UNSUPPORTED, "pointers that OpenMP has attached");
        CHECK(held.other == 8 && held.data == now);
        CHECK(ompx_plan_begin(device) == 0);
#pragma omp target update device(device) from(held.other)
        plan = ended();
        held.other = 9;
        CHECK(ompx_plan_launch(plan) == 0);
        CHECK(held.other == 8 && held.data == now);
        CHECK(ompx_plan_free(&plan) == 0);
    }

    if (omp_get_num_devices() > 1) {
        int const other = device == 0 ? 1 : 0;
        CHECK(ompx_plan_begin(device) == 0);
        touch();
#pragma omp target device(other)
        {
        }
        FAILS(ompx_plan_end(&plan), OMPX_ERR_UNSUPPORTED, "a device other than");
    }
}

static void misused(void) {
    ompx_plan_t plan = OMPX_PLAN_NONE;
    int const host = omp_get_initial_device();
    FAILS(ompx_plan_begin(host), OMPX_ERR_ARG, "is the host");
    FAILS(ompx_plan_begin(-1), OMPX_ERR_ARG, "is the host");
    FAILS(ompx_plan_begin(77), OMPX_ERR_ARG, "device is 77");
    FAILS(ompx_plan_end(&plan), OMPX_ERR_STATE, "records no plan");
    FAILS(ompx_plan_launch(OMPX_PLAN_NONE), OMPX_ERR_ARG, "not a plan");
    FAILS(ompx_plan_launch((ompx_plan_t)&plan), OMPX_ERR_ARG, "not a plan");
    FAILS(ompx_plan_free(NULL), OMPX_ERR_ARG, "null pointer");
    FAILS(ompx_plan_free(&plan), OMPX_ERR_ARG, "not a plan");

    CHECK(ompx_plan_begin(device) == 0);
    FAILS(ompx_plan_begin(device), OMPX_ERR_STATE, "records a plan already");
    FAILS(ompx_plan_end(&plan), OMPX_ERR_STATE, "no region or update");
#pragma omp target enter data device(device) map(to : now)
    CHECK(ompx_plan_begin(device) == 0);
    touch();
    FAILS(ompx_plan_end(NULL), OMPX_ERR_ARG, "null pointer");
    CHECK(ompx_plan_begin(device) == 0);
    touch();
    plan = ended();
    CHECK(ompx_plan_begin(device) == 0);
    FAILS(ompx_plan_launch(plan), OMPX_ERR_STATE, "cannot contain another plan");
    touch();
    ompx_plan_t second = ended();

    /* Freed and allocated again, perhaps at the same address. */
#pragma omp target exit data device(device) map(release : now)
    FAILS(ompx_plan_launch(plan), OMPX_ERR_STATE, "freed or unmapped");
#pragma omp target enter data device(device) map(to : now)
    FAILS(ompx_plan_launch(plan), OMPX_ERR_STATE, "freed or unmapped");
    FAILS(ompx_plan_launch(second), OMPX_ERR_STATE, "freed or unmapped");
    CHECK(ompx_plan_begin(device) == 0);
    touch();
    ompx_plan_t third = ended();
    CHECK(ompx_plan_launch(third) == 0);
    refused();
    CHECK(ompx_plan_launch(third) == 0);
    /* A thread that ends while it records. */
    in_thread(begin_only);
    CHECK(ompx_plan_begin(device) == 0);
    CHECK(ompx_rank_device(0) >= 0);
    touch();
    ompx_plan_t fourth = ended();
    CHECK(ompx_plan_free(&fourth) == 0);
    /* Memory of DiOMP's own allocation. */
    long *own = ompx_target_alloc(sizeof *own, device, ompx_symmetric_mem_alloc);
    CHECK(own != NULL && ompx_plan_begin(device) == 0);
#pragma omp target device(device) is_device_ptr(own)
    *own = 1;
    fourth = ended();
    CHECK(ompx_plan_launch(fourth) == 0);
    CHECK(ompx_barrier() == 0 && ompx_target_free(own, device) == 0);
    FAILS(ompx_plan_launch(fourth), OMPX_ERR_STATE, "freed or unmapped");
    CHECK(ompx_plan_free(&fourth) == 0);
    /* A section: the array's first element is not mapped. */
#pragma omp target enter data device(device) map(to : next[N / 2 : N / 2])
    CHECK(ompx_plan_begin(device) == 0);
#pragma omp target device(device) map(alloc : next[N / 2 : N / 2])
    next[N - 1] += 1;
    ompx_plan_t section = ended();
    CHECK(ompx_plan_launch(section) == 0);
#pragma omp target exit data device(device) map(release : next[N / 2 : N / 2])
    FAILS(ompx_plan_launch(section), OMPX_ERR_STATE, "freed or unmapped");
    CHECK(ompx_plan_free(&section) == 0);
    ompx_plan_t const freed = plan;
    CHECK(ompx_plan_free(&plan) == 0 && ompx_plan_free(&second) == 0);
    FAILS(ompx_plan_launch(freed), OMPX_ERR_ARG, "not a plan");
#pragma omp target exit data device(device) map(from : now)
    CHECK(ompx_plan_free(&third) == 0);
}

/* Regions that put to the next rank's device and wait for the other neighbour. */
static void communicating(void) {
    enum { ROUNDS = 30 };
    int const me = ompx_get_rank_num(), right = (me + 1) % ompx_get_num_ranks();
    long *received = ompx_target_alloc(sizeof *received, device, ompx_symmetric_mem_alloc);
    uint64_t *signal = ompx_target_alloc(sizeof *signal, device, ompx_symmetric_mem_alloc);
    CHECK(received != NULL && signal != NULL);
    long round = 0, wrong = 0;
#pragma omp target device(device) is_device_ptr(received, signal)
    *received = -1, *signal = 0;
    CHECK(ompx_barrier() == 0);
#pragma omp target data device(device) map(tofrom : round, wrong)
    {
        CHECK(ompx_plan_begin(device) == 0);
#pragma omp target device(device) is_device_ptr(received, signal) map(tofrom : round, wrong)
        {
            long const value = 1000 * me + round;
            ++round;
            wrong += ompx_put_signal(right, received, &value, sizeof value, signal, 1,
                                     OMPX_SIGNAL_ADD) != 0;
            wrong += ompx_signal_wait(signal, OMPX_CMP_GE, (uint64_t)round) != 0;
        }
        ompx_plan_t plan = ended();
        for (int i = 1; i < ROUNDS; ++i) {
            CHECK(ompx_plan_launch(plan) == 0);
        }
        CHECK(ompx_plan_free(&plan) == 0);
    }
    CHECK(wrong == 0);
    CHECK(round == ROUNDS);
    long last = 0;
    CHECK(ompx_fence() == 0 && ompx_barrier() == 0);
    CHECK(omp_target_memcpy(&last, received, sizeof last, 0, 0, omp_get_initial_device(), device) ==
          0);
    int const left = (me + ompx_get_num_ranks() - 1) % ompx_get_num_ranks();
    CHECK(last == 1000 * left + ROUNDS - 1);
    CHECK(ompx_barrier() == 0);
    CHECK(ompx_target_free(received, device) == 0 && ompx_target_free(signal, device) == 0);
}

int main(int argc, char **argv) {
    CHECK(omp_get_num_devices() > 0);
    device = ompx_rank_device(0);
    time_loop();
    values_and_updates();
    updates_between(10);
    updates_between(2000);
    updates_between(200000);
    threads();
    without_waiting();
    misused();
    if (argc > 1 && strcmp(argv[1], "calls") == 0) {
        communicating();
    }
    CHECK(ompx_barrier() == 0);
    if (ompx_get_rank_num() == 0) {
        printf("plans: ok\n");
    }
    return 0;
}
