// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The functions of libdiomp.so that libomptarget.so calls: the whole interface between the two.
// libomptarget looks up the symbol diomp_offload_table with dlsym. Without it, and before the
// runtime has started or after it has ended, libomptarget behaves as LLVM's does.
//
// Fixed layout, plain C types: the two libraries may come from different builds. A later version
// may append members and increments `version`; libomptarget accepts an older version.
#pragma once

#include <stdint.h>

#define DIOMP_OFFLOAD_TABLE_VERSION 4
#define DIOMP_OFFLOAD_TABLE_OLDEST 1

/// Symbols of include/diomp/device.h in an image that makes calls.
#define DIOMP_ENDPOINT_FUNCTION "diomp_device_endpoint"
#define DIOMP_ENDPOINT_VARIABLE "diomp_device_endpoint_pointer"

#ifdef __cplusplus
extern "C" {
#endif

/// An allocation that OpenMP requests on a device.
struct diomp_offload_request {
    const char *plugin;    ///< "cuda", "amdgpu", otherwise LLVM's name: "x86_64"
    int32_t plugin_device; ///< index within its plugin
    int32_t device;        ///< OpenMP's device number
    int64_t nbytes;        ///< greater than 0
    const void *host;      ///< the host data mapped to it, or null
};

struct diomp_offload_table {
    uint32_t version;
    /// Allocates memory in the device's segment. Returns null if that is not possible (runtime not
    /// running, segment full, device without a segment); the caller then allocates as usual.
    /// Thread-safe; does not block on other ranks; not reentrant.
    void *(*allocate)(const struct diomp_offload_request *request);
    /// Frees memory of allocate() and returns 1. Returns 0 for any other address, which is not
    /// touched. In both cases, blocks until own transfers that use the memory have completed.
    /// Thread-safe.
    int (*release)(int32_t device, void *address);
    /// Since version 2. Number of ranks on this node; 0 before the runtime has started.
    /// Thread-safe.
    int (*num_local_ranks)(void);
    /// Since version 3. Call before each region on a device whose images make calls (they have the
    /// symbol DIOMP_ENDPOINT_FUNCTION). Returns what their variable DIOMP_ENDPOINT_VARIABLE must
    /// hold: an address in device memory, or 0. `of` names the device; its size and host address
    /// are not read. May wait for other ranks of the node. Thread-safe.
    uint64_t (*prepare_region)(const struct diomp_offload_request *of);
    /// Since version 3. Call when a region on such a device has ended: reports the error of a call
    /// in it, which ends the process unless errors are returned. Thread-safe.
    void (*finish_region)(int32_t device);
    /// Since version 4. prepare_region for a caller that will call end_region: the region may make
    /// requests that a thread of this process executes meanwhile.
    uint64_t (*begin_region)(const struct diomp_offload_request *of);
    /// Since version 4. finish_region for a region of begin_region, called once for each that
    /// returned an address, after the region has ended or if it could not be started. Blocks until
    /// the region's requests have been executed.
    void (*end_region)(int32_t device);
};

typedef const struct diomp_offload_table *(*diomp_offload_table_function)(void);

#ifdef __cplusplus
}
#endif
