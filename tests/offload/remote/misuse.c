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

/* What is wrong is said where the copy begins. */
static void bad_copy_between(const char *what, char *to, int to_device, char *from, size_t nbytes) {
    int const code = omp_target_memcpy(to, from, nbytes, 0, 0, to_device, device);
    printf("%s: %d, then %d\n", what, code != 0, answer());
}

static void bad_copies_between(void) {
    int const other = omp_get_num_devices() - 1;
    char *const here = omp_target_alloc(part, device);
    char *const there = omp_target_alloc(part, other);
    char *const freed = omp_target_alloc(part, device);
    char *const freed_there = omp_target_alloc(part, other);
    omp_target_free(freed, device);
    omp_target_free(freed_there, other);
    bad_copy_between("past the end here", there, other, here + 1, part);
    bad_copy_between("past the end there", there + part - 8, other, here, 4000);
    bad_copy_between("far past the end", there, other, here, (size_t)100 * mebibyte);
    bad_copy_between("freed here", there, other, freed, part);
    bad_copy_between("freed there", freed_there, other, here, part);
    bad_copy_between("within, past the end", here + 8, device, here, part);
    printf("right: %d\n", omp_target_memcpy(there, here, part, 0, 0, other, device));
    omp_target_free(here, device);
    omp_target_free(there, other);
}

/* Numbers that no device has. */
static void bad_device(void) {
    char bytes[8] = {0};
    char *const there = omp_target_alloc(sizeof bytes, device);
    printf("then %d\n", answer());
    fflush(stdout);
    omp_target_memcpy(there, bytes, sizeof bytes, 0, 0, omp_get_num_devices() + 5,
                      omp_get_initial_device());
}
static void bad_region(void) {
    int const wrong = omp_get_num_devices() + 5;
    printf("then %d\n", answer());
    fflush(stdout);
#pragma omp target device(wrong)
    {
    }
}

/* Until there is no room; what has been freed is there again, for others, and whole. */
static void exhaust(void) {
    enum { most = 1000 };
    char *parts[most];
    int count[2] = {0, 0};
    answer(); // LLVM keeps small parts
    for (int round = 0; round < 2; ++round) {
        while (count[round] < most &&
               (parts[count[round]] = omp_target_alloc((size_t)4 * mebibyte, device)) != NULL) {
            ++count[round];
        }
        int wrong = 0;
        for (int i = 0; i < count[round]; ++i) {
            char *const mine = parts[i];
            if (i % 3 == 1) {
                omp_target_free(mine, device);
                char *const small = omp_target_alloc(mebibyte, device);
                wrong += small == NULL;
                omp_target_free(small, device);
                continue;
            }
#pragma omp target is_device_ptr(mine) device(device) firstprivate(i)
            memset(mine, i, (size_t)4 * mebibyte);
        }
        for (int i = 0; i < count[round]; ++i) {
            char *const mine = parts[i];
            if (i % 3 != 1) {
#pragma omp target is_device_ptr(mine) device(device) firstprivate(i) map(tofrom : wrong)
                wrong += mine[0] != (char)i || mine[4 * mebibyte - 1] != (char)i;
                omp_target_free(mine, device);
            }
        }
        printf("round %d: %s, wrong %d, then %d\n", round,
               count[round] > 0 && count[round] < most ? "full" : "no limit", wrong, answer());
    }
    printf("%s\n", count[0] == count[1] ? "as much as before" : "some is missing");
}

/* Hundreds of regions that nobody has waited for yet, in chains on all devices. */
static void queued(void) {
    enum { chains = 8, n = 100 };
    static long data[chains][n];
    int session = 0;
#pragma omp target device(device) map(from : session)
    session = getpid();
    printf("session %d\n", session);
    fflush(stdout);
#pragma omp parallel num_threads(2)
#pragma omp single
    for (int step = 0; step < 100000; ++step) {
        for (int c = 0; c < chains; ++c) {
            long *const mine = data[c];
            int const number = (step + c) % omp_get_num_devices();
#pragma omp target device(number) map(tofrom : mine[0 : n]) depend(inout : mine[0]) nowait
            mine[step % n] += 1;
        }
    }
}

/* Large copies from device to device, without an end. */
static void copying(void) {
    size_t const nbytes = (size_t)64 * mebibyte;
    int const other = omp_get_num_devices() - 1;
    char *const here = omp_target_alloc(nbytes, device);
    char *const there = omp_target_alloc(nbytes, other);
    int session = 0;
#pragma omp target device(device) map(from : session)
    session = getpid();
    for (long i = 0; omp_target_memcpy(there, here, nbytes, 0, 0, other, device) == 0; ++i) {
        if (i == 2) {
            printf("session %d\n", session);
            fflush(stdout);
        }
    }
    fprintf(stderr, "the copy failed\n");
    exit(3);
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

/* What only the host has: a variable, a function, and what a pointer in mapped data leads to. */
static int of_the_host = 3;
static int host_function(void) { return of_the_host; }
static void crash_host_variable(void) {
    int *volatile pointer = &of_the_host;
    int *const where = pointer;
#pragma omp target device(device) firstprivate(where)
    *where = 1;
}
static void crash_host_function(void) {
    int (*volatile pointer)(void) = host_function;
    int (*const function)(void) = pointer;
    int value = 0;
#pragma omp target device(device) firstprivate(function) map(from : value)
    value = function();
}
static void crash_host_memory(void) {
    struct {
        int *inside;
    } list = {malloc(mebibyte)};
    list.inside[0] = 1;
#pragma omp target device(device) map(tofrom : list)
    list.inside[0] += 1;
    free(list.inside);
}

/* Many small parallel regions; how many threads took part. */
static void small_parallel(void) {
    int threads = 0;
#pragma omp target device(device) map(tofrom : threads)
    for (int i = 0; i < 50; ++i) {
#pragma omp parallel
#pragma omp single
        threads = omp_get_num_threads();
    }
    printf("%d threads\n", threads);
}

/* Regions side by side, and parallel ones after them. */
static void side_by_side(void) {
#pragma omp parallel num_threads(2)
#pragma omp single
    for (int i = 0; i < 2; ++i) {
#pragma omp target device(device) nowait
        usleep(100000);
    }
    usleep(1000000); // what ran them may end
    small_parallel();
}

static void nothing(void) { printf("%d devices\n", omp_get_num_devices()); }

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

static void late(void) {
    int value = 0;
    printf("%d devices\n", omp_get_num_devices());
    fflush(stdout);
    sleep(2); /* for the test, which stops the session */
#pragma omp target device(device) map(from : value)
    value = 1;
    printf("%d\n", value);
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
                 {"late", late},
                 {"token", token},
                 {"bad_copies", bad_copies},
                 {"bad_copies_between", bad_copies_between},
                 {"bad_device", bad_device},
                 {"bad_region", bad_region},
                 {"exhaust", exhaust},
                 {"queued", queued},
                 {"copying", copying},
                 {"free_twice", free_twice},
                 {"out_of_memory", out_of_memory},
                 {"loss", copies_after_loss},
                 {"null", crash_null},
                 {"abort", crash_abort},
                 {"kill", crash_kill},
                 {"parallel", crash_in_parallel},
                 {"exit0", crash_exit_0},
                 {"exit3", crash_exit_3},
                 {"host_variable", crash_host_variable},
                 {"host_function", crash_host_function},
                 {"host_memory", crash_host_memory},
                 {"small_parallel", small_parallel},
                 {"side_by_side", side_by_side},
                 {"nothing", nothing},
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
