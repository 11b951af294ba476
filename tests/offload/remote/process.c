/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * usage: process MODE    what programs do with their process, on all devices */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* 2 for each device that works. */
static int answer(void) {
    int value = 0;
    for (int device = 0; device < omp_get_num_devices(); ++device) {
#pragma omp target device(device) map(tofrom : value)
        value += omp_is_initial_device() ? 100 : 2;
    }
    return value;
}

/* Its exit status; 1000 and the signal where it died. */
static int end_of(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void child_exits(void) {
    printf("parent %d\n", answer());
    fflush(stdout);
    pid_t const child = fork();
    if (child == 0) {
        exit(3); // with all destructors
    }
    printf("child ended with %d\n", end_of(child));
    printf("parent %d\n", answer());
}

/* Devices that the parent has used mean nothing to the child. */
static void child_uses_what_was_used(void) {
    printf("parent %d\n", answer());
    fflush(stdout);
    pid_t const child = fork();
    if (child == 0) {
        printf("child %d\n", answer());
        exit(3);
    }
    printf("child failed: %d\n", end_of(child) != 3);
    printf("parent %d\n", answer());
}

/* Workers, one of which has a child of its own, beside their parent. */
static void children_use(void) {
    enum { count = 3 };
    pid_t children[count];
    for (int i = 0; i < count; ++i) {
        children[i] = fork();
        if (children[i] == 0) {
            int const first = answer();
            pid_t const grandchild = i == 0 ? fork() : -1;
            if (grandchild == 0) {
                exit(0);
            }
            int const ended = grandchild > 0 ? end_of(grandchild) : 0;
            exit(first == answer() && ended == 0 ? first : 99);
        }
    }
    printf("parent %d\n", answer());
    for (int i = 0; i < count; ++i) {
        printf("child %d\n", end_of(children[i]));
    }
    printf("parent %d\n", answer());
}

/* Until somebody ends them. */
static void child_stays(void) {
    int session = 0;
#pragma omp target map(from : session)
    session = getpid();
    pid_t const child = fork();
    if (child == 0) {
        printf("session %d\nchild %d\n", session, getpid());
        fflush(stdout);
        pause();
    }
    pause();
}

static void closed_output(void) {
    char line[1000];
    memset(line, 'x', sizeof line);
#pragma omp target map(to : line)
    for (int i = 0; i < 1000; ++i) {
        dprintf(STDOUT_FILENO, "%.999s\n", line);
    }
    printf("on the host\n");
    fflush(stdout);
    dprintf(STDERR_FILENO, "answer %d\n", answer());
}

static void prints_and_crashes(void) {
#pragma omp target
    {
        dprintf(STDERR_FILENO, "the last words\n");
        dprintf(STDOUT_FILENO, "of a region\n");
        abort();
    }
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } modes[] = {
        {"child_exits", child_exits},     {"child_uses_what_was_used", child_uses_what_was_used},
        {"children_use", children_use},   {"child_stays", child_stays},
        {"closed_output", closed_output}, {"prints_and_crashes", prints_and_crashes}};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; ++i) {
        if (argc == 2 && strcmp(argv[1], modes[i].name) == 0) {
            modes[i].run();
            return 0;
        }
    }
    fprintf(stderr, "usage: process MODE\n");
    return 2;
}
