// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// LLVM's own plugins, for the sessions of a device service. When libomptarget.so is loaded, it
// looks up the symbol diomp_take_plugins in the program with dlsym and passes its table; see
// table.h for the layout rules.
//
// One plugin per process, and the first table that is passed. Functions that return int return 0
// for success and -1 for an error, unless stated otherwise; LLVM has then printed the reason to
// standard error. All functions block until the device has finished. Thread-safe.
#pragma once

#include "offload/remote_table.h"

#define DIOMP_PLUGIN_TABLE_VERSION 5

#ifdef __cplusplus
extern "C" {
#endif

struct diomp_offload_table; // table.h

struct diomp_plugin_table {
    uint32_t version;
    /// Starts LLVM's plugin of this name: "host", "cuda", "amdgpu". Returns the number of its
    /// devices, or -1 if the plugin is not available or fails to start.
    int (*start)(const char *name);
    /// The ELF machine of its images.
    uint32_t (*machine)(void);
    /// Initialises a device. Call once, before the functions below.
    int (*use)(int device);
    /// Loads an image; null: an error.
    void *(*load)(int device, const void *image, uint64_t nbytes);
    /// Returns the address of a variable or the handle of a kernel; 0: not in the image.
    uint64_t (*symbol)(void *image, const char *name, uint64_t nbytes);
    uint64_t (*allocate)(int device, uint64_t nbytes);
    int (*release)(int device, uint64_t address);
    int (*write)(int device, uint64_t to, const void *from, uint64_t nbytes);
    int (*read)(int device, void *to, uint64_t from, uint64_t nbytes);
    int (*copy)(int device, uint64_t to, uint64_t from, uint64_t nbytes);
    int (*launch)(int device, const struct diomp_remote_launch *launch);
    /// Makes the device current in the calling thread, which libraries need that locate its memory
    /// by address. The other functions also change the current device. Does not block.
    int (*enter)(int device);
    /// LLVM's name for the architecture of an initialised device: "sm_90", "gfx90a". The string is
    /// valid until the calling thread's next call.
    const char *(*architecture)(int device);
    /// Memory of an initialised device, in bytes; 0: unknown.
    uint64_t (*memory_bytes)(int device);
    /// The runtime of calls in regions, instead of one that libomptarget looks for. Call before the
    /// first region. `runtime` lives until the process ends.
    void (*use_runtime)(const struct diomp_offload_table *runtime);
};

typedef void (*diomp_take_plugins_function)(const struct diomp_plugin_table *table);

#ifdef __cplusplus
}
#endif
