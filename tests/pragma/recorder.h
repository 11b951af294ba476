/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* What the stand-in for the runtime offers to the tests' programs. */
#ifndef DIOMP_TESTS_PRAGMA_RECORDER_H
#define DIOMP_TESTS_PRAGMA_RECORDER_H

#include <diomp.h>
#include <stddef.h>

#if defined(__cplusplus)
extern "C" {
#endif

/* From here on, addresses in [start, start + nbytes) are printed as name+offset. */
void recorder_name(const void *start, size_t nbytes, const char *name);
void recorder_forget(void);
/* Prints a line among the calls'. */
void recorder_say(const char *text);
/* Counts how often it was called; gives the value back. */
int recorder_once(int value);
int recorder_evaluations(void);
/* A group that prints as that number, and has that many members. */
ompx_group_t recorder_group(int number);
/* What the next events write at their end, and where. */
void recorder_complete_with(int *where, int value);
/* While held, no event ends. */
void recorder_hold(int held);

#if defined(__cplusplus)
}
#endif

#endif /* DIOMP_TESTS_PRAGMA_RECORDER_H */
