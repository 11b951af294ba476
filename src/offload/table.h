// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What libomptarget.so asks of libdiomp.so: the whole interface between the two. libomptarget looks
// for the symbol diomp_offload_table with dlsym; without it, or before the runtime has started and
// after it has ended, libomptarget does what it does in LLVM.
//
// Fixed layout, plain C types: the two libraries may be of different builds. A later version may
// add members at the end and counts `version` up; libomptarget takes an older one as well.
#pragma once

#include <stdint.h>

#define DIOMP_OFFLOAD_TABLE_VERSION 2
#define DIOMP_OFFLOAD_TABLE_OLDEST 1

#ifdef __cplusplus
extern "C" {
#endif

/// An allocation that OpenMP wants on a device.
struct diomp_offload_request {
    const char *plugin;    ///< "cuda", "amdgpu", else as LLVM calls it: "x86_64"
    int32_t plugin_device; ///< among those of its plugin
    int32_t device;        ///< OpenMP's device number
    int64_t nbytes;        ///< above 0
    const void *host;      ///< what is mapped there, or null
};

struct diomp_offload_table {
    uint32_t version;
    /// Memory in the device's segment; null if it is not ours to give (not running, no room, a
    /// device without segment): allocate as usual then. Any thread; does not block on other ranks;
    /// must not be called from inside itself.
    void *(*allocate)(const struct diomp_offload_request *request);
    /// Gives back what allocate() returned: 1. Anything else is left alone: 0. Blocks until own
    /// transfers that use the memory are over, in both cases. Any thread.
    int (*release)(int32_t device, void *address);
    /// Since version 2. Ranks on this node; 0 before the runtime has started. Any thread.
    int (*num_local_ranks)(void);
};

typedef const struct diomp_offload_table *(*diomp_offload_table_function)(void);

#ifdef __cplusplus
}
#endif
