/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* What the SHMEM tests share: they are programs as a user writes them, without a test framework. */
#pragma once

#include <shmem.h>
#include <stdio.h>

static int num_failures_;

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "PE %d: %s:%d: not true: %s\n", shmem_my_pe(), __FILE__, __LINE__,     \
                    #condition);                                                                   \
            ++num_failures_;                                                                       \
        }                                                                                          \
    } while (0)

#define EXPECT_EQ(actual, expected)                                                                \
    do {                                                                                           \
        long long const actual_ = (long long)(actual);                                             \
        long long const expected_ = (long long)(expected);                                         \
        if (actual_ != expected_) {                                                                \
            fprintf(stderr, "PE %d: %s:%d: %s is %lld, expected %lld\n", shmem_my_pe(), __FILE__,  \
                    __LINE__, #actual, actual_, expected_);                                        \
            ++num_failures_;                                                                       \
        }                                                                                          \
    } while (0)

/* The exit status. */
static inline int end_test(void) {
    shmem_barrier_all();
    shmem_finalize();
    return num_failures_ == 0 ? 0 : 1;
}
