/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * usage: misuse MODE    what goes wrong with device 0, or takes long */
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { mebibyte = 1 << 20, part = 65536 };
static int const device = 0;

/* Whether the device works. */
static int answer(void) {
    int value = 40;
#pragma omp target device(device) map(tofrom : value)
    value += 2;
    return value;
}

/* The routine says no, and the device goes on. */
static void bad_copy(const char *what, void *address, size_t nbytes) {
    char *const bytes = calloc(nbytes, 1);
    int const to =
        omp_target_memcpy(address, bytes, nbytes, 0, 0, device, omp_get_initial_device());
    int const from =
        omp_target_memcpy(bytes, address, nbytes, 0, 0, omp_get_initial_device(), device);
    printf("%s: %d %d, then %d\n", what, to != 0, from != 0, answer());
    free(bytes);
}

static void bad_copies(void) {
    // LLVM keeps smaller parts for the next one.
    char *const kept = omp_target_alloc(part, device);
    char *const freed = omp_target_alloc(part, device);
    omp_target_free(freed, device);
    bad_copy("freed", freed, 100);
    bad_copy("freed, large", freed, part);
    bad_copy("past the end", kept, 100000);
    bad_copy("past the end, small", kept + part - 2, 4000);
    bad_copy("no memory", (void *)16, 100);
    bad_copy("no memory, large", (void *)16, 100000);
    char mine[100];
    bad_copy("host memory", mine, sizeof mine);
    omp_target_free(kept, device);
}

static void out_of_memory(void) {
    void *const large = omp_target_alloc((size_t)64 * mebibyte, device);
    printf("alloc: %d, then %d\n", large != NULL, answer());
    char *const bytes = malloc((size_t)64 * mebibyte);
    fflush(stdout);
#pragma omp target device(device) map(to : bytes[0 : (size_t)64 * mebibyte])
    bytes[0] = 1;
}

/* Routines say so, at the latest once the loss is known. */
static void copies_after_loss(void) {
    int session = 0;
    char bytes[8] = {0};
    char *const there = omp_target_alloc(part, device);
#pragma omp target device(device) map(from : session)
    session = getpid();
    kill(session, SIGKILL); // it is on this host
    int in_vain = 0;
    while (in_vain < 1000 && omp_target_memcpy(there, bytes, sizeof bytes, 0, 0, device,
                                               omp_get_initial_device()) == 0) {
        usleep(10000);
        ++in_vain;
    }
    printf("%s\n", in_vain < 1000 ? "copies fail" : "copies seem to work");
    fflush(stdout);
    exit(3);
}

static void crash_null(void) {
#pragma omp target device(device)
    {
        volatile int *volatile nothing = NULL;
        *nothing = 1;
    }
}
static void crash_abort(void) {
#pragma omp target device(device)
    abort();
}
static void crash_exit(int code) {
#pragma omp target device(device) firstprivate(code)
    exit(code);
}
static void crash_kill(void) {
#pragma omp target device(device)
    kill(getpid(), SIGKILL);
}
static void crash_in_parallel(void) {
#pragma omp target parallel device(device) num_threads(2)
    if (omp_get_thread_num() == omp_get_num_threads() - 1) {
        abort();
    }
}

/* Until somebody ends it. */
static void endless(void) {
#pragma omp target device(device)
    {
        dprintf(STDOUT_FILENO, "session %d\n", getpid());
        for (;;) {
            pause();
        }
    }
}
/* The same, between regions. */
static void busy(void) {
    enum { n = 50000 };
    double data[n];
    memset(data, 0, sizeof data);
    for (long i = 0;; ++i) {
        int process = 0;
#pragma omp target device(device) map(tofrom : data, process)
        {
            process = getpid();
            data[0] += 1;
        }
        if (i == 20) {
            printf("session %d\n", process);
            fflush(stdout);
        }
    }
}

static void where(void) {
    int process = getpid();
#pragma omp target map(tofrom : process)
    process -= getpid();
    printf("%d devices, %s, answer %d\n", omp_get_num_devices(),
           process == 0 ? "in this process" : "in another process", answer());
}

static void token(void) {
    int is_there = 1;
#pragma omp target device(device) map(tofrom : is_there)
    is_there = getenv("DIOMP_TOKEN") != NULL;
    printf("the token is %s\n", is_there ? "there" : "not there");
}

static void free_twice(void) {
    void *const memory = omp_target_alloc(part, device);
    omp_target_free(memory, device);
    omp_target_free(memory, device);
}

static void crash_exit_0(void) { crash_exit(0); }
static void crash_exit_3(void) { crash_exit(3); }

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } modes[] = {{"answer", where},
                 {"token", token},
                 {"bad_copies", bad_copies},
                 {"free_twice", free_twice},
                 {"out_of_memory", out_of_memory},
                 {"loss", copies_after_loss},
                 {"null", crash_null},
                 {"abort", crash_abort},
                 {"kill", crash_kill},
                 {"parallel", crash_in_parallel},
                 {"exit0", crash_exit_0},
                 {"exit3", crash_exit_3},
                 {"endless", endless},
                 {"busy", busy}};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; ++i) {
        if (argc == 2 && strcmp(argv[1], modes[i].name) == 0) {
            modes[i].run();
            printf("went on\n");
            return 0;
        }
    }
    fprintf(stderr, "usage: misuse MODE\n");
    return 2;
}
