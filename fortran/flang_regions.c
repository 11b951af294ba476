// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Target regions that flang compiles for processors. Flang's device code calls the functions that
// LLVM's device runtime has on GPUs, but LLVM has no device runtime for processors. These functions
// are linked into the image of a program's regions, and call libomp, which the process has loaded.
// A region has one team, with the threads that OMP_NUM_THREADS says.
#include <stdint.h>

#define IN_IMAGE __attribute__((visibility("hidden")))

// libomp's.
typedef void microtask(int32_t *gtid, int32_t *tid, ...);
int32_t __kmpc_global_thread_num(void *location);
void __kmpc_push_num_threads(void *location, int32_t gtid, int32_t num_threads);
void __kmpc_push_proc_bind(void *location, int32_t gtid, int32_t proc_bind);
void __kmpc_fork_call(void *location, int32_t num_args, microtask *task, ...);
void __kmpc_serialized_parallel(void *location, int32_t gtid);
void __kmpc_end_serialized_parallel(void *location, int32_t gtid);
int omp_get_thread_num(void);

/// The calling thread executes the region; other values are GPU threads that wait for work.
IN_IMAGE int32_t __kmpc_target_init(void *environment, void *launch) {
    (void)environment;
    (void)launch;
    return -1;
}
IN_IMAGE void __kmpc_target_deinit(void) {}

/// libomp's is for the host.
IN_IMAGE int32_t omp_is_initial_device(void) { return 0; }

enum { max_args = 32 };
typedef void outlined(int32_t *gtid, int32_t *tid, void *, void *, void *, void *, void *, void *,
                      void *, void *, void *, void *, void *, void *, void *, void *, void *,
                      void *, void *, void *, void *, void *, void *, void *, void *, void *,
                      void *, void *, void *, void *, void *, void *, void *, void *);
struct parallel {
    outlined *function;
    void *args[max_args];
};

/// The function takes as many of the arguments as it has: callers remove arguments in the calling
/// conventions of x86-64 and 64-bit Arm.
static void call(int32_t *gtid, int32_t *tid, const struct parallel *region) {
    void *const *const a = region->args;
    region->function(gtid, tid, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10],
                     a[11], a[12], a[13], a[14], a[15], a[16], a[17], a[18], a[19], a[20], a[21],
                     a[22], a[23], a[24], a[25], a[26], a[27], a[28], a[29], a[30], a[31]);
}

/// `parallel`: `condition` is that of its if clause; -1 for clauses that are not there.
IN_IMAGE void __kmpc_parallel_51(void *location, int32_t gtid, int32_t condition,
                                 int32_t num_threads, int32_t proc_bind, void *function,
                                 void *wrapper, void **args, int64_t num_args) {
    (void)wrapper; // for worker threads of GPUs
    if (num_args > max_args) {
        __builtin_trap();
    }
    struct parallel region = {(outlined *)function, {0}};
    for (int64_t i = 0; i < num_args; ++i) {
        region.args[i] = args[i];
    }
    if (condition == 0) {
        int32_t zero = 0;
        __kmpc_serialized_parallel(location, gtid);
        call(&gtid, &zero, &region);
        __kmpc_end_serialized_parallel(location, gtid);
        return;
    }
    if (num_threads > 0) {
        __kmpc_push_num_threads(location, gtid, num_threads);
    }
    if (proc_bind >= 0) {
        __kmpc_push_proc_bind(location, gtid, proc_bind);
    }
    __kmpc_fork_call(location, 1, (microtask *)call, &region);
}
/// LLVM 22's, which also has the modifier strict of num_threads.
IN_IMAGE void __kmpc_parallel_60(void *location, int32_t gtid, int32_t condition,
                                 int32_t num_threads, int32_t proc_bind, void *function,
                                 void *wrapper, void **args, int64_t num_args, int32_t strict) {
    (void)strict;
    __kmpc_parallel_51(location, gtid, condition, num_threads, proc_bind, function, wrapper, args,
                       num_args);
}

// Loops: `body` is called with each of the `count` numbers from 0 on that the calling thread has. A
// chunk of 0 means one block for each thread. Chunks of `distribute` have no effect on one team,
// and LLVM 22's last argument, whether a thread has one iteration at most, none on the result.
#define LOOPS(SUFFIX, TYPE)                                                                        \
    IN_IMAGE void __kmpc_for_static_loop_##SUFFIX(void *location, void (*body)(TYPE, void *),      \
                                                  void *arg, TYPE count, TYPE num_threads,         \
                                                  TYPE chunk) {                                    \
        (void)location;                                                                            \
        uint64_t const end = (uint64_t)count;                                                      \
        uint64_t const threads = num_threads > 0 ? (uint64_t)num_threads : 1;                      \
        uint64_t const me = (uint64_t)omp_get_thread_num();                                        \
        uint64_t const size = chunk > 0 ? (uint64_t)chunk : end / threads + (end % threads != 0);  \
        for (uint64_t begin = me * size; begin < end; begin += threads * size) {                   \
            for (uint64_t i = begin; i < end && i - begin < size; ++i) {                           \
                body((TYPE)i, arg);                                                                \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    IN_IMAGE void __kmpc_distribute_static_loop_##SUFFIX(                                          \
        void *location, void (*body)(TYPE, void *), void *arg, TYPE count, TYPE block_chunk) {     \
        (void)location;                                                                            \
        (void)block_chunk;                                                                         \
        for (TYPE i = 0; i < count; ++i) {                                                         \
            body(i, arg);                                                                          \
        }                                                                                          \
    }                                                                                              \
    IN_IMAGE void __kmpc_distribute_for_static_loop_##SUFFIX(                                      \
        void *location, void (*body)(TYPE, void *), void *arg, TYPE count, TYPE num_threads,       \
        TYPE block_chunk, TYPE chunk) {                                                            \
        (void)block_chunk;                                                                         \
        __kmpc_for_static_loop_##SUFFIX(location, body, arg, count, num_threads, chunk);           \
    }

LOOPS(4, int32_t)
LOOPS(4u, uint32_t)
LOOPS(8, int64_t)
LOOPS(8u, uint64_t)
