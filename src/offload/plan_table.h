// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Plans: target regions and updates that are recorded and launched again. Only libomptarget knows
// what a region launches on its device. When it is loaded, it looks up the symbol
// diomp_offload_plans in libdiomp.so with dlsym and passes its table; see table.h for the layout
// rules.
#pragma once

#include <stdint.h>

#define DIOMP_PLAN_TABLE_VERSION 1

#ifdef __cplusplus
extern "C" {
#endif

/// Why operations cannot be launched again.
enum diomp_plan_problem {
    DIOMP_PLAN_NO_PROBLEM = 0,
    DIOMP_PLAN_MAPS = 1,        ///< a construct allocated or freed memory of the device
    DIOMP_PLAN_TRANSFERS = 2,   ///< a transfer that is no `target update`
    DIOMP_PLAN_THREADS = 3,     ///< another thread used the device
    DIOMP_PLAN_DEVICES = 4,     ///< the thread used another device
    DIOMP_PLAN_POINTERS = 5,    ///< an update includes pointers that OpenMP has attached
    DIOMP_PLAN_FAILED = 6,      ///< an operation failed
    DIOMP_PLAN_UNSUPPORTED = 7, ///< a region whose launch cannot be repeated
};

enum diomp_plan_outcome {
    DIOMP_PLAN_DONE = 0,
    DIOMP_PLAN_ERROR = 1, ///< an operation failed; LLVM has printed the reason to standard error
    DIOMP_PLAN_STALE = 2, ///< device memory that the plan uses has been freed
    DIOMP_PLAN_BUSY = 3, ///< a recording of the thread, or of the device, or a launch has not ended
    DIOMP_PLAN_NONE = 4, ///< the thread does not record, or there is no such device any more
    DIOMP_PLAN_ATTACHED = 5, ///< OpenMP has attached pointers in memory that the plan updates
};

struct diomp_plan_content {
    uint64_t num_regions;
    uint64_t num_updates;
    int32_t problem; ///< the first one: enum diomp_plan_problem
};

/// Thread-safe. Results are values of enum diomp_plan_outcome.
struct diomp_plan_table {
    uint32_t version;
    /// Records the regions and updates that the calling thread executes on an OpenMP device until
    /// end(). Starts the device if necessary. Calls `abandoned` if the thread ends before that.
    int32_t (*begin)(int32_t device, void (*abandoned)(void));
    /// Ends the calling thread's recording. Without a problem, *plan is a plan, which free() frees;
    /// otherwise it is null.
    int32_t (*end)(struct diomp_plan_content *into, void **plan);
    /// Executes the operations in their order. Blocks until the device has finished.
    int32_t (*launch)(void *plan);
    /// Issues the operations like launch() without waiting for the device: *launched is null if it
    /// has finished, otherwise to be passed to test() until that does not return DIOMP_PLAN_BUSY.
    int32_t (*start)(void *plan, void **launched);
    /// Does not block. One thread at a time for each launch, which any other result ends.
    int32_t (*test)(void *launched);
    /// Blocks until the device has finished, and ends the launch.
    int32_t (*wait)(void *launched);
    /// No thread may be in launch() or start().
    void (*free)(void *plan);
    /// Memory of the device that libomptarget has not allocated is freed.
    void (*forget_memory)(int32_t device, const void *begin, uint64_t nbytes);
    /// Whether the calling thread is executing a region, as the first thread of a host device.
    int32_t (*is_in_region)(void);
};

/// Receives the table before the program's own code runs.
typedef void (*diomp_offload_plans_function)(const struct diomp_plan_table *table);

#ifdef __cplusplus
}
#endif
