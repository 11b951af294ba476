/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * usage: listening FIRST SECOND
 *
 * A job that waits before its ranks connect to each other and after all have: until another
 * process opens the FIFO FIRST, and SECOND, for writing. In between every rank puts a payload that
 * is easy to find to all others, and rank 0 prints how long the work took.
 */
#include "support/check.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PAYLOAD_BYTES = 32 * 1024, ROUNDS = 300 };

static const char phrase[] = "this text must not be on the wire ";

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void wait_for(const char *fifo) {
    int const fd = open(fifo, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    close(fd);
}

static void fill(char *text, int from, int round) {
    for (size_t i = 0; i < PAYLOAD_BYTES; ++i) {
        text[i] = phrase[i % (sizeof(phrase) - 1)];
    }
    snprintf(text, PAYLOAD_BYTES, "%d %d", from, round);
}

int main(int argc, char **argv) {
    int const me = ompx_rank_num();
    int const ranks = ompx_num_ranks();
    if (argc != 3) {
        fprintf(stderr, "listening: needs two FIFOs\n");
        return 2;
    }
    printf("joined %d\n", me);
    fflush(stdout);
    wait_for(argv[1]);

    double const begin = seconds();
    char *const memory = ompx_alloc((size_t)ranks * PAYLOAD_BYTES, 64, OMPX_MEM_SYMMETRIC);
    char *const mine = malloc(PAYLOAD_BYTES);
    char *const right = malloc(PAYLOAD_BYTES);
    CHECK(memory != NULL && mine != NULL && right != NULL);
    for (int round = 0; round < ROUNDS; ++round) {
        fill(mine, me, round);
        for (int i = 1; i < ranks; ++i) {
            CHECK(ompx_put((me + i) % ranks, memory + (size_t)me * PAYLOAD_BYTES, mine,
                           PAYLOAD_BYTES) == 0);
        }
        CHECK(ompx_barrier() == 0);
        for (int i = 1; i < ranks; ++i) {
            int const from = (me + i) % ranks;
            fill(right, from, round);
            CHECK(memcmp(memory + (size_t)from * PAYLOAD_BYTES, right, PAYLOAD_BYTES) == 0);
        }
        CHECK(ompx_barrier() == 0);
    }
    if (me == 0) {
        printf("worked %.6f\n", seconds() - begin);
        fflush(stdout);
    }
    wait_for(argv[2]);
    CHECK(ompx_barrier() == 0);
    return 0;
}
