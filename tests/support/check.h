/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * For test programs in C that run on several ranks: the first failed check of any rank ends the
 * job, since the ranks are out of step afterwards. */
#ifndef DIOMP_TESTS_SUPPORT_CHECK_H
#define DIOMP_TESTS_SUPPORT_CHECK_H

#include <diomp.h>
#include <stdio.h>
#include <string.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "rank %d: %s:%d: not so: %s [%s]\n", ompx_rank_num(), __FILE__,        \
                    __LINE__, #condition, ompx_last_error());                                      \
            ompx_abort(1);                                                                         \
        }                                                                                          \
    } while (0)

/* With DIOMP_ERRORS=return: the call gives the code, and its message has the words. */
#define FAILS(call, code, words)                                                                   \
    do {                                                                                           \
        int const got_ = (call);                                                                   \
        CHECK(got_ == (code));                                                                     \
        CHECK(strstr(ompx_last_error(), words) != NULL);                                           \
    } while (0)

#endif
