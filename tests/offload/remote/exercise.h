/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Plain OpenMP on devices that are the last ones of the program. Each case is a function that ends
 * the program at the first thing that is not so. */
#ifndef DIOMP_TESTS_OFFLOAD_REMOTE_EXERCISE_H
#define DIOMP_TESTS_OFFLOAD_REMOTE_EXERCISE_H

#include <omp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            _Exit(1);                                                                              \
        }                                                                                          \
    } while (0)

extern int first_remote; /* number of the first remote device */
extern int num_remote;

/* The remote devices in turn. */
static inline int remote_device(int i) { return first_remote + i % num_remote; }
static inline int host(void) { return omp_get_initial_device(); }
/* 0 + 1 + ... below n, each with `more` added. */
static inline double sum_below(int n, int more) { return (n - 1.0) * n / 2 + (double)more * n; }
/* A value that tells place and use apart. */
static inline unsigned char pattern(size_t i, unsigned seed) {
    return (unsigned char)(i * 2654435761U >> 13 ^ seed * 97 ^ i);
}

/* maps.c */
void case_devices(void);
void case_map_sizes(void);
void case_map_large(void);
void case_map_structs(void);
void case_map_list(void);
void case_globals(void);
void case_copies_globals(void);
void case_update(void);
void case_reference_counts(void);
void case_device_pointers(void);
/* memory.c */
void case_allocate(void);
void case_copies(void);
void case_copies_between(void);
void case_rectangles(void);
void case_copies_async(void);
void case_associate(void);
void case_idle_pages(void);
/* tasks.c */
void case_depend_chain(void);
void case_depend_across(void);
void case_many_tasks(void);
void case_threads(void);
void case_enter_nowait(void);
/* limits.c */
void case_no_bytes(void);
void case_overlaps(void);
void case_unmapped_updates(void);
void case_same_array(void);
void case_many_chains(void);
/* regions.c */
void case_reductions(void);
void case_loops(void);
void case_nested(void);
void case_routines(void);
void case_many_arguments(void);
void case_state(void);
void case_print(void);

#endif
