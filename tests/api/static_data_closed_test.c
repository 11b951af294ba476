/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Static data of a library that was closed, and what has its addresses afterwards. The argument is
 * the library. */
#include "support/check.h"

#include <dlfcn.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LAST = 19999, PAGE = 4096 };

static int me, next, previous;

static void check_child(void) {
    pid_t const child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        _exit(7);
    }
    int how = 0;
    CHECK(waitpid(child, &how, 0) == child);
    CHECK(WIFEXITED(how) && WEXITSTATUS(how) == 7);
}

/* Opens the library, lets other ranks write to its data, and closes it. */
static long *use_library(const char *path, long round) {
    void *const library = dlopen(path, RTLD_NOW);
    CHECK(library != NULL);
    long *const data = dlsym(library, "library_data"), *const zeros =
                                                           dlsym(library, "library_zeros");
    CHECK(data != NULL && zeros != NULL);
    CHECK(data[0] == 1 && data[LAST] == 0 && zeros[100] == 0);
    CHECK(ompx_register_symmetric(data, (LAST + 1) * sizeof *data) == 0);
    CHECK(ompx_register_symmetric(zeros + 3, 1001 * sizeof *zeros) == 0);
    long const value = me + 100 * round + 1;
    CHECK(ompx_put(next, &data[LAST], &value, sizeof value) == 0);
    CHECK(ompx_put(next, &zeros[100], &value, sizeof value) == 0);
    CHECK(ompx_barrier() == 0);
    CHECK(data[LAST] == previous + 100 * round + 1 && zeros[100] == data[LAST]);
    check_child();
    CHECK(ompx_unregister_symmetric(data) == 0);
    CHECK(ompx_unregister_symmetric(zeros + 3) == 0);
    CHECK(dlclose(library) == 0);
    return data;
}

int main(int argc, char **argv) {
    int const ranks = ompx_num_ranks();
    me = ompx_rank_num();
    next = (me + 1) % ranks;
    previous = (me + ranks - 1) % ranks;
    CHECK(argc == 2);
    long *data = NULL;
    for (long round = 0; round < 4; ++round) {
        data = use_library(argv[1], round);
        check_child();
    }
    /* Other memory takes the addresses of some of its pages. */
    uintptr_t const page = ((uintptr_t)data & ~(uintptr_t)(PAGE - 1)) + 2 * PAGE;
    long *const taken = mmap((void *)page, 16 * PAGE, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK(taken == (void *)page);
    taken[7] = -5;
    check_child();
    CHECK(ompx_register_symmetric(taken, 16 * PAGE) == 0);
    long const value = me + 1;
    CHECK(ompx_put(next, &taken[100], &value, sizeof value) == 0);
    CHECK(ompx_barrier() == 0);
    CHECK(taken[100] == previous + 1 && taken[7] == -5);
    CHECK(ompx_unregister_symmetric(taken) == 0);
    /* Only one rank has closed the library in between. */
    void *const library = dlopen(argv[1], RTLD_NOW);
    CHECK(library != NULL);
    data = dlsym(library, "library_data");
    CHECK(ompx_register_symmetric(data, sizeof *data) == 0);
    CHECK(ompx_unregister_symmetric(data) == 0);
    if (me == 0) {
        CHECK(dlclose(library) == 0);
    }
    data = dlsym(dlopen(argv[1], RTLD_NOW), "library_data");
    CHECK(data != NULL && ompx_register_symmetric(data, sizeof *data) == 0);
    CHECK(ompx_put(next, data, &value, sizeof value) == 0);
    CHECK(ompx_fence() == 0 && ompx_barrier() == 0);
    CHECK(data[0] == previous + 1);
    check_child();
    CHECK(ompx_barrier() == 0);
    return 0;
}
