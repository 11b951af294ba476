/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Stands in for the runtime: prints each call. Events are completed by threads of its own, a little
 * later. */
#include "recorder.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static struct {
    const char *start;
    size_t nbytes;
    const char *name;
} names[16];
static int num_names;
static atomic_int evaluations;
static pthread_mutex_t output = PTHREAD_MUTEX_INITIALIZER;

struct ompx_event {
    int *where;
    int value;
    omp_event_handle_t task;
};
static int *complete_where;
static int complete_value;
static atomic_int is_held;

void recorder_name(const void *start, size_t nbytes, const char *name) {
    names[num_names].start = (const char *)start;
    names[num_names].nbytes = nbytes;
    names[num_names++].name = name;
}

void recorder_forget(void) { num_names = 0; }

void recorder_say(const char *text) { printf("%s\n", text); }

int recorder_once(int value) {
    ++evaluations;
    return value;
}
int recorder_evaluations(void) { return atomic_exchange(&evaluations, 0); }

ompx_group_t recorder_group(int number) { return (ompx_group_t)(intptr_t)number; }
int ompx_group_size(ompx_group_t group) { return group == NULL ? 2 : (int)(intptr_t)group; }

void recorder_complete_with(int *where, int value) {
    complete_where = where;
    complete_value = value;
}

void recorder_hold(int held) { is_held = held; }

static void print_pointer(const void *pointer) {
    const char *at = (const char *)pointer;
    for (int i = 0; i < num_names; ++i) {
        if (at >= names[i].start && at < names[i].start + names[i].nbytes) {
            printf(" %s+%td", names[i].name, at - names[i].start);
            return;
        }
    }
    printf(" ?");
}

static void print_call(const char *name, const void *dst, const void *src, int device, size_t size,
                       int type, int op, int root, ompx_group_t group) {
    pthread_mutex_lock(&output);
    printf("%s", name);
    print_pointer(dst);
    if (src != NULL) {
        print_pointer(src);
    }
    printf(" device %d size %zu", device, size);
    if (type >= 0) {
        printf(" type %d op %d", type, op);
    }
    if (root >= 0) {
        printf(" root %d", root);
    }
    printf(" group %d\n", (int)(intptr_t)group);
    pthread_mutex_unlock(&output);
}

static ompx_event_t make_event(void) {
    ompx_event_t event = (ompx_event_t)malloc(sizeof(*event));
    event->where = complete_where;
    event->value = complete_value;
    return event;
}

static void *complete(void *argument) {
    ompx_event_t event = (ompx_event_t)argument;
    struct timespec const little = {0, 50000000};
    do {
        nanosleep(&little, NULL);
    } while (is_held);
    if (event->where != NULL) {
        *event->where = event->value;
    }
    omp_fulfill_event(event->task);
    free(event);
    return NULL;
}

int ompx_event_detach(ompx_event_t *event, omp_event_handle_t task) {
    (*event)->task = task;
    pthread_t thread;
    pthread_create(&thread, NULL, complete, *event);
    pthread_detach(thread);
    *event = NULL;
    return 0;
}

#define TYPED(name)                                                                                \
    int ompx_target_##name(void *dst, const void *src, int device, size_t count, ompx_type_t type, \
                           ompx_op_t op, ompx_group_t group) {                                     \
        print_call(#name, dst, src, device, count, type, op, -1, group);                           \
        return 0;                                                                                  \
    }                                                                                              \
    int ompx_target_##name##_nb(void *dst, const void *src, int device, size_t count,              \
                                ompx_type_t type, ompx_op_t op, ompx_group_t group,                \
                                ompx_event_t *event) {                                             \
        print_call(#name "_nb", dst, src, device, count, type, op, -1, group);                     \
        *event = make_event();                                                                     \
        return 0;                                                                                  \
    }
#define BLOCKS(name)                                                                               \
    int ompx_target_##name(void *dst, const void *src, int device, size_t nbytes,                  \
                           ompx_group_t group) {                                                   \
        print_call(#name, dst, src, device, nbytes, -1, -1, -1, group);                            \
        return 0;                                                                                  \
    }                                                                                              \
    int ompx_target_##name##_nb(void *dst, const void *src, int device, size_t nbytes,             \
                                ompx_group_t group, ompx_event_t *event) {                         \
        print_call(#name "_nb", dst, src, device, nbytes, -1, -1, -1, group);                      \
        *event = make_event();                                                                     \
        return 0;                                                                                  \
    }
#define ROOTED_BLOCKS(name)                                                                        \
    int ompx_target_##name(void *dst, const void *src, int device, size_t nbytes, int root,        \
                           ompx_group_t group) {                                                   \
        print_call(#name, dst, src, device, nbytes, -1, -1, root, group);                          \
        return 0;                                                                                  \
    }                                                                                              \
    int ompx_target_##name##_nb(void *dst, const void *src, int device, size_t nbytes, int root,   \
                                ompx_group_t group, ompx_event_t *event) {                         \
        print_call(#name "_nb", dst, src, device, nbytes, -1, -1, root, group);                    \
        *event = make_event();                                                                     \
        return 0;                                                                                  \
    }
static void print_list(const char *name, const size_t *list, ompx_group_t group) {
    printf(" %s", name);
    for (int i = 0; list != NULL && i < ompx_group_size(group); ++i) {
        printf("%c%zu", i == 0 ? ' ' : ',', list[i]);
    }
    printf("%s", list == NULL ? " -" : "");
}

static void print_blocks(const char *name, const void *dst, const size_t *dst_nbytes,
                         const size_t *dst_offsets, const void *src, const size_t *src_nbytes,
                         const size_t *src_offsets, int device, int root, ompx_group_t group) {
    pthread_mutex_lock(&output);
    printf("%s", name);
    print_pointer(dst);
    if (dst_nbytes != NULL) {
        print_list("sizes", dst_nbytes, group);
        print_list("offsets", dst_offsets, group);
    }
    print_pointer(src);
    if (src_nbytes != NULL) {
        print_list("sizes", src_nbytes, group);
        print_list("offsets", src_offsets, group);
    }
    printf(" device %d", device);
    if (root >= 0) {
        printf(" root %d", root);
    }
    printf(" group %d\n", (int)(intptr_t)group);
    pthread_mutex_unlock(&output);
}

int ompx_target_gatherv(void *dst, const size_t *nbytes, const size_t *offsets, const void *src,
                        int device, int root, ompx_group_t group) {
    print_blocks("gatherv", dst, nbytes, offsets, src, NULL, NULL, device, root, group);
    return 0;
}
int ompx_target_gatherv_nb(void *dst, const size_t *nbytes, const size_t *offsets, const void *src,
                           int device, int root, ompx_group_t group, ompx_event_t *event) {
    print_blocks("gatherv_nb", dst, nbytes, offsets, src, NULL, NULL, device, root, group);
    *event = make_event();
    return 0;
}
int ompx_target_allgatherv(void *dst, const size_t *nbytes, const size_t *offsets, const void *src,
                           int device, ompx_group_t group) {
    print_blocks("allgatherv", dst, nbytes, offsets, src, NULL, NULL, device, -1, group);
    return 0;
}
int ompx_target_allgatherv_nb(void *dst, const size_t *nbytes, const size_t *offsets,
                              const void *src, int device, ompx_group_t group,
                              ompx_event_t *event) {
    print_blocks("allgatherv_nb", dst, nbytes, offsets, src, NULL, NULL, device, -1, group);
    *event = make_event();
    return 0;
}
int ompx_target_scatterv(void *dst, const void *src, const size_t *nbytes, const size_t *offsets,
                         int device, int root, ompx_group_t group) {
    print_blocks("scatterv", dst, NULL, NULL, src, nbytes, offsets, device, root, group);
    return 0;
}
int ompx_target_scatterv_nb(void *dst, const void *src, const size_t *nbytes, const size_t *offsets,
                            int device, int root, ompx_group_t group, ompx_event_t *event) {
    print_blocks("scatterv_nb", dst, NULL, NULL, src, nbytes, offsets, device, root, group);
    *event = make_event();
    return 0;
}
int ompx_target_alltoallv(void *dst, const size_t *dst_nbytes, const size_t *dst_offsets,
                          const void *src, const size_t *src_nbytes, const size_t *src_offsets,
                          int device, ompx_group_t group) {
    print_blocks("alltoallv", dst, dst_nbytes, dst_offsets, src, src_nbytes, src_offsets, device,
                 -1, group);
    return 0;
}
int ompx_target_alltoallv_nb(void *dst, const size_t *dst_nbytes, const size_t *dst_offsets,
                             const void *src, const size_t *src_nbytes, const size_t *src_offsets,
                             int device, ompx_group_t group, ompx_event_t *event) {
    print_blocks("alltoallv_nb", dst, dst_nbytes, dst_offsets, src, src_nbytes, src_offsets, device,
                 -1, group);
    *event = make_event();
    return 0;
}

TYPED(allreduce)
TYPED(scan)
TYPED(exscan)
TYPED(reduce_scatter)
BLOCKS(allgather)
BLOCKS(alltoall)
ROOTED_BLOCKS(gather)
ROOTED_BLOCKS(scatter)

int ompx_target_bcast(void *ptr, int device, size_t nbytes, int root, ompx_group_t group) {
    print_call("bcast", ptr, NULL, device, nbytes, -1, -1, root, group);
    return 0;
}
int ompx_target_bcast_nb(void *ptr, int device, size_t nbytes, int root, ompx_group_t group,
                         ompx_event_t *event) {
    print_call("bcast_nb", ptr, NULL, device, nbytes, -1, -1, root, group);
    *event = make_event();
    return 0;
}
int ompx_target_reduce(void *dst, const void *src, int device, size_t count, ompx_type_t type,
                       ompx_op_t op, int root, ompx_group_t group) {
    print_call("reduce", dst, src, device, count, type, op, root, group);
    return 0;
}
int ompx_target_reduce_nb(void *dst, const void *src, int device, size_t count, ompx_type_t type,
                          ompx_op_t op, int root, ompx_group_t group, ompx_event_t *event) {
    print_call("reduce_nb", dst, src, device, count, type, op, root, group);
    *event = make_event();
    return 0;
}
int ompx_barrier_group(ompx_group_t group) {
    printf("barrier group %d\n", (int)(intptr_t)group);
    return 0;
}
int ompx_fence_group(ompx_group_t group) {
    printf("fence group %d\n", (int)(intptr_t)group);
    return 0;
}
