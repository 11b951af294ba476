// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An OpenMP program that knows nothing of DiOMP. For each device it prints the number of the
// process that runs the device's regions, then it does what its argument says.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/// Writes "PID@HOST" of the region into `where`, "0@..." if it ran here and "wrong" if its data
/// were.
static void region(int device, char *where, size_t size) {
    int numbers[1000];
    int pid = 0;
    char host[65] = "";
    for (int i = 0; i < 1000; ++i) {
        numbers[i] = i;
    }
#pragma omp target map(tofrom : numbers) map(from : pid, host) device(device)
    {
        for (int i = 0; i < 1000; ++i) {
            numbers[i] *= 2;
        }
        pid = omp_is_initial_device() ? 0 : getpid();
        gethostname(host, sizeof host);
    }
    snprintf(where, size, "%d@%s", pid, host);
    for (int i = 0; i < 1000; ++i) {
        if (numbers[i] != 2 * i) {
            snprintf(where, size, "wrong");
        }
    }
}

/// Copies from the first device to the second one.
static void pass(void) {
    size_t const nbytes = (size_t)1 << 20;
    void *const from = omp_target_alloc(nbytes, 0);
    void *const to = omp_target_alloc(nbytes, 1);
    if (from == NULL || to == NULL || omp_target_memcpy(to, from, nbytes, 0, 0, 1, 0) != 0) {
        abort();
    }
    omp_target_free(from, 0);
    omp_target_free(to, 1);
}

int main(int argc, char **argv) {
    const char *const todo = argc > 1 ? argv[1] : "";
    const char *const rank = getenv("DIOMP_RANK");
    char line[1000];
    char where[100];
    int length = snprintf(line, sizeof line, "%s:", rank ? rank : "-");
    for (int device = 0; device < omp_get_num_devices() && length < 900; ++device) {
        region(device, where, sizeof where);
        length += snprintf(line + length, sizeof line - (size_t)length, " %s", where);
    }
    puts(line);
    fflush(stdout);
    if (strcmp(todo, "wait") == 0) {
        pause();
    } else if (strcmp(todo, "again") == 0) { // when a line comes
        if (fgets(line, sizeof line, stdin)) {
            region(0, where, sizeof where);
            puts(where);
        }
    } else if (strcmp(todo, "pass") == 0) { // before and after a line comes
        pass();
        puts("passed");
        fflush(stdout);
        if (fgets(line, sizeof line, stdin)) {
            pass();
            puts("passed again");
        }
    } else if (strcmp(todo, "leave") == 0 && rank && strcmp(rank, "0") == 0) {
        _exit(0); // the others go on
    } else if (strcmp(todo, "leave") == 0) {
        sleep(1);
        puts("late");
    }
    return 0;
}
