/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * A program that behaves as its first word says; whole_test.py and errors_test.py run it. Where a
 * misuse is shown, rank 1 commits it and the others wait for it at a barrier. */
#include "support/check.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NBYTES = 4096 };

static int me, ranks;
static char *memory;       /* symmetric, NBYTES */
static char local[NBYTES]; /* private */

/* ---- Misuse: one rank's call */

static void wrong_rank(void) { ompx_put(ranks, memory, local, 8); }
static void negative_rank(void) { ompx_get(local, -1, memory, 24); }
static void bad_address(void) { ompx_put(0, local + 8, local, 8); }
static void null_pointer(void) { ompx_get(NULL, 0, memory, 8); }
static void negative_size(void) { ompx_put(0, memory, local, (size_t)-8); }
static void past_the_segment(void) {
    ompx_segment_info_t info;
    CHECK(ompx_segment_info(&info) == 0);
    ompx_put(0, memory, local, info.nbytes + 1);
}
static void past_the_allocation(void) { ompx_put(0, memory + NBYTES - 4, local, 8); }
static void double_free(void) {
    void *p = ompx_alloc(100, 0, OMPX_MEM_LOCAL);
    CHECK(ompx_free(p) == 0);
    ompx_free(p);
}
static void use_after_free(void) {
    void *p = ompx_alloc(100, 0, OMPX_MEM_LOCAL);
    CHECK(ompx_free(p) == 0);
    ompx_put(0, p, local, 8);
}
static void free_inside(void) { ompx_free(memory + 64); }
static void unlock_not_held(void) { ompx_unlock(0); }
static void unknown_type(void) { ompx_atomic_add(0, memory, local, 999); }

/* ---- Misuse: calls that do not fit together */

static void differing_sizes(void) { ompx_alloc(me == 1 ? 2000 : 1000, 0, OMPX_MEM_SYMMETRIC); }
static void differing_calls(void) {
    int64_t sum = 0;
    if (me == 1) {
        ompx_allreduce(&sum, &sum, 1, OMPX_INT64, OMPX_SUM, NULL);
    } else {
        ompx_bcast(&sum, sizeof(sum), NULL);
    }
}
static void differing_splits(void) {
    ompx_group_t made = OMPX_GROUP_NONE;
    if (me == 1) {
        ompx_group_dup(ompx_group_world, &made);
    } else {
        ompx_group_split(ompx_group_world, 0, 0, &made);
    }
}
static void differing_roots(void) { ompx_bcast_from(local, 8, me == 1 ? 1 : 0, NULL); }
static void differing_counts(void) { ompx_bcast(local, me == 1 ? 24 : 16, NULL); }
static void after_finalize(void) {
    CHECK(ompx_finalize() == 0);
    if (me == 1) {
        ompx_put(0, memory, local, 8);
    }
}
static void missing_rank(void) {
    while (me == 1) {
        pause(); /* until a signal, such as that by which others ask for its stack */
    }
    ompx_barrier();
}
static void early_exit(void) {
    if (me == 1) {
        exit(0);
    }
    ompx_barrier();
}
/* Dies in the middle of a computation, while others wait for it. */
static void die(void) {
    if (me == 1) {
        raise(SIGSEGV);
    }
    ompx_barrier();
}
static void early_underscore_exit(void) {
    if (me == 1) {
        _exit(0);
    }
    ompx_barrier();
}

/* ---- Where ranks are when a job is ended */

/* Names that stacks show: neither inlined nor, with STAY at their end, left by a jump. */
#define PLACE static __attribute__((noinline)) void
#define STAY __asm__ volatile("" ::: "memory")

static atomic_int never;

PLACE loop_for_ever(void) {
    while (atomic_load(&never) == 0) {
    }
}
PLACE wait_at_the_barrier(void) {
    ompx_barrier();
    STAY;
}
static void busy_rank(void) {
    if (me == 1) {
        loop_for_ever();
    }
    wait_at_the_barrier();
    STAY;
}
PLACE sleep_for_ever(void) {
    for (;;) {
        pause();
    }
}
static void *sleep_in_thread(void *unused) {
    sleep_for_ever();
    return unused;
}
/* Three threads beside main; rank 1 has a use of its own for every real-time signal. */
static volatile sig_atomic_t num_signals;
static void count_signal(int number) {
    (void)number;
    ++num_signals;
}
static void several_threads(void) {
    pthread_t thread;
    for (int i = 0; i < 3; ++i) {
        CHECK(pthread_create(&thread, NULL, sleep_in_thread, NULL) == 0);
    }
    for (int number = SIGRTMIN; me == 1 && number <= SIGRTMAX; ++number) {
        signal(number, count_signal);
    }
    if (me == 0) {
        loop_for_ever();
    }
    wait_at_the_barrier();
    STAY;
}
static void stopped_rank(void) {
    if (me == 1) {
        raise(SIGSTOP);
    }
    wait_at_the_barrier();
    STAY;
}
/* A signal that nobody sends. */
PLACE wait_for_nobody(void) {
    ompx_signal_wait((uint64_t *)(void *)memory, OMPX_CMP_EQ, 1);
    STAY;
}
static void alone(void) {
    wait_for_nobody();
    STAY;
}
static void endless(void) {
    printf("%d\n", (int)getpid());
    fflush(stdout);
    loop_for_ever();
}

/* ---- Regular behaviour */

static void nothing(void) {}

/* 10 puts of 8 bytes, 3 gets of 100. */
/* Every rank first talks to all others once the file that TEST_GO names is there. */
static void talk_late(void) {
    const char *go = getenv("TEST_GO");
    CHECK(go != NULL);
    printf("rank %d waits\n", me);
    fflush(stdout);
    struct timespec const pause = {0, 1000000};
    while (access(go, F_OK) != 0) {
        nanosleep(&pause, NULL);
    }
    for (int rank = 0; rank < ranks; ++rank) {
        unsigned char const mine = (unsigned char)(me + 1);
        ompx_put(rank, memory + me, &mine, 1);
    }
    ompx_barrier();
    int sum = 0;
    for (int rank = 0; rank < ranks; ++rank) {
        sum += memory[rank];
    }
    CHECK(sum == ranks * (ranks + 1) / 2);
}

/* Rank 0 has a use of its own for SIGUSR1. */
static void handle_signal_and_talk(void) {
    if (me == 0) {
        signal(SIGUSR1, count_signal);
    }
    talk_late();
    printf("rank %d got %d\n", me, (int)num_signals);
}

static void two_reductions(void) {
    static double values[12500]; /* 100000 bytes */
    CHECK(ompx_allreduce(local, local, 1, OMPX_INT64, OMPX_SUM, NULL) == 0);
    CHECK(ompx_allreduce(values, values, 12500, OMPX_DOUBLE, OMPX_SUM, NULL) == 0);
}
static void count_transfers(void) {
    for (int i = 0; i < 10; ++i) {
        CHECK(ompx_put((me + 1) % ranks, memory, local, 8) == 0);
    }
    for (int i = 0; i < 3; ++i) {
        CHECK(ompx_get(local, (me + 1) % ranks, memory, 100) == 0);
    }
}

/* A put of 100 bytes that nobody waits for until 100 ms later. */
static void put_and_compute(void) {
    CHECK(ompx_put_nb((me + 1) % ranks, memory, local, 100, NULL) == 0);
    struct timespec const pause = {0, 100000000};
    nanosleep(&pause, NULL);
    CHECK(ompx_fence() == 0);
}

/* A put by a thread of its own, then calls of the world and of the even or odd ranks. */
static void *put_in_thread(void *name) {
    CHECK(prctl(PR_SET_NAME, name) == 0);
    CHECK(ompx_put((me + 1) % ranks, memory, local, 8) == 0);
    CHECK(ompx_fence_rank((me + 1) % ranks) == 0);
    return NULL;
}
static void trace_groups(void) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, put_in_thread, "putter") == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(ompx_sync(ompx_group_world) == 0);
    ompx_group_t half;
    int64_t value = me;
    CHECK(ompx_group_split(ompx_group_world, me % 2, 0, &half) == 0);
    CHECK(ompx_allreduce(&value, &value, 1, OMPX_INT64, OMPX_SUM, half) == 0);
    CHECK(ompx_group_free(&half) == 0);
}

/* 5 puts to each rank by the own address of an asymmetric part. */
static void count_pointers(void) {
    char *part = ompx_alloc((size_t)(me + 1) * 64, 0, OMPX_MEM_ASYMMETRIC);
    CHECK(part != NULL);
    for (int i = 0; i < 5; ++i) {
        for (int peer = 0; peer < ranks; ++peer) {
            CHECK(ompx_put(peer, part, local, (size_t)(peer + 1) * 64) == 0);
        }
    }
    CHECK(ompx_free(part) == 0);
}

static void out_of_memory(void) { ompx_alloc((size_t)8 << 20, 0, OMPX_MEM_LOCAL); }

static void impossible_size(void) { ompx_alloc((size_t)1 << 62, 0, OMPX_MEM_LOCAL); }

static void exchange_once(void) {
    memset(local, me + 1, NBYTES);
    CHECK(ompx_put((me + 1) % ranks, memory, local, NBYTES) == 0);
    CHECK(ompx_barrier() == 0);
    for (int i = 0; i < NBYTES; ++i) {
        CHECK(memory[i] == (me + ranks - 1) % ranks + 1);
    }
}

static void exchange_for_two_seconds(void) {
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int64_t is_over = 0; !is_over;) {
        exchange_once();
        clock_gettime(CLOCK_MONOTONIC, &now);
        int64_t const mine = now.tv_sec - begin.tv_sec >= 2;
        CHECK(ompx_allreduce(&is_over, &mine, 1, OMPX_INT64, OMPX_MAX, ompx_group_world) == 0);
    }
}

static void where(void) {
    ompx_segment_info_t info;
    CHECK(ompx_segment_info(&info) == 0);
    exchange_once();
    printf("%d %#lx %zu\n", me, (unsigned long)info.base, info.nbytes);
}

/* Says how far it is and goes on when told, so that two jobs are known to overlap. */
static void told(const char *stage) {
    if (me == 0) {
        char line[64];
        printf("%s\n", stage);
        fflush(stdout);
        CHECK(fgets(line, sizeof(line), stdin) != NULL);
    }
    CHECK(ompx_barrier() == 0);
}
static void in_steps(const char *seed) {
    unsigned char const pattern = (unsigned char)(atoi(seed) + me);
    unsigned char const expected = (unsigned char)(atoi(seed) + (me + ranks - 1) % ranks);
    int64_t mine = atoi(seed), sum = 0;
    told("ready");
    memset(local, pattern, NBYTES);
    CHECK(ompx_put((me + 1) % ranks, memory, local, NBYTES) == 0);
    CHECK(ompx_lock(me) == 0);
    told("written");
    for (int i = 0; i < NBYTES; ++i) {
        CHECK((unsigned char)memory[i] == expected);
    }
    CHECK(ompx_allreduce(&sum, &mine, 1, OMPX_INT64, OMPX_SUM, NULL) == 0);
    CHECK(sum == mine * ranks);
    CHECK(ompx_unlock(me) == 0);
}

static void wait_for(pid_t child, int expected) {
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == expected);
}
/* The child ends as any program, with exit handlers; its parent's job must not notice. */
static void fork_and_exit(void) {
    fflush(NULL);
    pid_t const child = fork();
    if (child == 0) {
        exit(0);
    }
    wait_for(child, 0);
    exchange_once();
}
/* A child is no rank: what it asks of the runtime fails, in the child alone. */
static void fork_and_call(void) {
    fflush(NULL);
    pid_t const child = fork();
    if (child == 0) {
        ompx_barrier();
        exit(0);
    }
    wait_for(child, 1);
    exchange_once();
}
static void fork_and_finalize(void) {
    fflush(NULL);
    pid_t const child = fork();
    if (child == 0) {
        ompx_finalize();
        exit(0);
    }
    wait_for(child, 1);
    exchange_once();
}
/* Its own status, and nothing of the job's. */
static void fork_and_abort(void) {
    fflush(NULL);
    pid_t const child = fork();
    if (child == 0) {
        ompx_abort(9);
    }
    wait_for(child, 9);
    exchange_once();
}
static void execute_again(void) {
    char name[] = "actor";
    char word[] = "nothing";
    char *const words[] = {name, word, NULL};
    execv("/proc/self/exe", words);
    _exit(127);
}
/* What a child executes is a world of its own. */
static void fork_and_exec(void) {
    fflush(NULL);
    pid_t const child = fork();
    if (child == 0) {
        execute_again();
    }
    wait_for(child, 0);
    exchange_once();
}
/* The other ranks know the program that has joined, not this one. */
static void exec_after_start(void) {
    if (me == 1) {
        execute_again();
    }
    ompx_barrier();
}
static void run_command(void) {
    CHECK(system("true") == 0);
    exchange_once();
}

/* Rank 0 computes without a call into the runtime until the others have locked, taken registered
 * memory by message, and unlocked: it ends only if somebody else serves them there. */
static void compute(void) {
    static long registered = 4711;
    atomic_long *done = (atomic_long *)(void *)memory;
    long *address = &registered;
    long *theirs = NULL;
    CHECK(ompx_register(&registered, sizeof(registered)) == 0);
    memset(memory, 0, NBYTES);
    memcpy(memory + 64, &address, sizeof(address));
    CHECK(ompx_barrier() == 0);
    if (me == 0) {
        while (atomic_load(done) < ranks - 1) {
        }
    } else {
        CHECK(ompx_get(&theirs, 0, memory + 64, sizeof(theirs)) == 0);
        for (int i = 0; i < 100; ++i) {
            long seen = 0;
            CHECK(ompx_lock(0) == 0);
            CHECK(ompx_get(&seen, 0, theirs, sizeof(seen)) == 0 && seen >= 4711 + i);
            ++seen;
            CHECK(ompx_put(0, theirs, &seen, sizeof(seen)) == 0);
            CHECK(ompx_unlock(0) == 0);
        }
        int64_t const one = 1;
        CHECK(ompx_atomic_add(0, memory, &one, OMPX_INT64) == 0);
    }
    CHECK(ompx_barrier() == 0);
    CHECK(me != 0 || registered == 4711 + 100 * (ranks - 1));
    CHECK(ompx_unregister(&registered) == 0);
}

/* Memory of this process that is not a file: "kB" of the heap, stacks, and global memory. */
static void resident(void) {
    exchange_once();
    char line[128];
    long own = 0, shared = 0;
    FILE *status = fopen("/proc/self/status", "r");
    CHECK(status != NULL);
    while (fgets(line, sizeof(line), status) != NULL) {
        (void)sscanf(line, "RssAnon: %ld", &own);
        (void)sscanf(line, "RssShmem: %ld", &shared);
    }
    fclose(status);
    printf("%ld\n", own + shared);
}

/* ---- */

static struct behaviour {
    const char *name;
    void (*act)(void);
    int by_one; /* rank 1 alone */
} const behaviours[] = {{"busy_rank", busy_rank, 0},
                        {"several_threads", several_threads, 0},
                        {"stopped_rank", stopped_rank, 0},
                        {"alone", alone, 0},
                        {"endless", endless, 0},
                        {"wrong_rank", wrong_rank, 1},
                        {"negative_rank", negative_rank, 1},
                        {"bad_address", bad_address, 1},
                        {"null_pointer", null_pointer, 1},
                        {"negative_size", negative_size, 1},
                        {"past_the_segment", past_the_segment, 1},
                        {"past_the_allocation", past_the_allocation, 1},
                        {"double_free", double_free, 1},
                        {"use_after_free", use_after_free, 1},
                        {"free_inside", free_inside, 1},
                        {"unlock_not_held", unlock_not_held, 1},
                        {"unknown_type", unknown_type, 1},
                        {"differing_sizes", differing_sizes, 0},
                        {"differing_calls", differing_calls, 0},
                        {"differing_splits", differing_splits, 0},
                        {"differing_roots", differing_roots, 0},
                        {"differing_counts", differing_counts, 0},
                        {"after_finalize", after_finalize, 0},
                        {"missing_rank", missing_rank, 0},
                        {"early_exit", early_exit, 0},
                        {"early_underscore_exit", early_underscore_exit, 0},
                        {"die", die, 0},
                        {"compute", compute, 0},
                        {"resident", resident, 0},
                        {"nothing", nothing, 0},
                        {"talk_late", talk_late, 0},
                        {"handle_signal_and_talk", handle_signal_and_talk, 0},
                        {"two_reductions", two_reductions, 0},
                        {"count_transfers", count_transfers, 0},
                        {"put_and_compute", put_and_compute, 0},
                        {"trace_groups", trace_groups, 0},
                        {"count_pointers", count_pointers, 0},
                        {"out_of_memory", out_of_memory, 1},
                        {"impossible_size", impossible_size, 1},
                        {"exchange_for_two_seconds", exchange_for_two_seconds, 0},
                        {"where", where, 0},
                        {"fork_and_exit", fork_and_exit, 0},
                        {"fork_and_call", fork_and_call, 0},
                        {"fork_and_finalize", fork_and_finalize, 0},
                        {"fork_and_abort", fork_and_abort, 0},
                        {"fork_and_exec", fork_and_exec, 0},
                        {"exec_after_start", exec_after_start, 0},
                        {"run_command", run_command, 0}};

int main(int argc, char **argv) {
    me = ompx_rank_num();
    ranks = ompx_num_ranks();
    if (argc < 2 || strcmp(argv[1], "nothing") == 0) {
        return 0;
    }
    memory = ompx_alloc(NBYTES, 0, OMPX_MEM_SYMMETRIC);
    CHECK(memory != NULL);
    if (argc > 2 && strcmp(argv[1], "in_steps") == 0) {
        in_steps(argv[2]);
        return 0;
    }
    for (size_t i = 0; i < sizeof(behaviours) / sizeof(behaviours[0]); ++i) {
        if (strcmp(argv[1], behaviours[i].name) == 0) {
            if (!behaviours[i].by_one || me == 1) {
                behaviours[i].act();
            }
            if (ompx_is_initialized()) {
                ompx_barrier();
            }
            return 0;
        }
    }
    fprintf(stderr, "no behaviour '%s'\n", argv[1]);
    return 2;
}
