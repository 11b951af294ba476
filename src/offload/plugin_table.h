// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// LLVM's own plugins, for a device service: how its sessions use GPUs. When libomptarget.so is
// loaded it looks for the symbol diomp_take_plugins in the program with dlsym and hands its table
// over; see table.h for the rules of the layout.
//
// One plugin per process. Functions that return int give 0 for success and -1 for an error, unless
// they say otherwise; LLVM has told standard error why. All of them block until the device is done.
// Any thread.
#pragma once

#include "offload/remote_table.h"

#define DIOMP_PLUGIN_TABLE_VERSION 3

#ifdef __cplusplus
extern "C" {
#endif

struct diomp_plugin_table {
    uint32_t version;
    /// Starts LLVM's plugin of this name: "host", "cuda", "amdgpu". The number of its devices; -1:
    /// there is no such plugin here, or it does not start.
    int (*start)(const char *name);
    /// The ELF machine of its images.
    uint32_t (*machine)(void);
    /// Makes a device usable. Once, before the rest.
    int (*use)(int device);
    /// A loaded image; null: an error.
    void *(*load)(int device, const void *image, uint64_t nbytes);
    /// The address of a variable, or the handle of a kernel; 0: the image does not have it.
    uint64_t (*symbol)(void *image, const char *name, uint64_t nbytes);
    uint64_t (*allocate)(int device, uint64_t nbytes);
    int (*release)(int device, uint64_t address);
    int (*write)(int device, uint64_t to, const void *from, uint64_t nbytes);
    int (*read)(int device, void *to, uint64_t from, uint64_t nbytes);
    int (*copy)(int device, uint64_t to, uint64_t from, uint64_t nbytes);
    int (*launch)(int device, const struct diomp_remote_launch *launch);
    /// Makes the device the calling thread's current one, as libraries want that find its memory by
    /// address. The other functions change it likewise. Does not block.
    int (*enter)(int device);
    /// Of a device in use, as LLVM calls it: "sm_90", "gfx90a". The calling thread's until it asks
    /// again.
    const char *(*architecture)(int device);
};

typedef void (*diomp_take_plugins_function)(const struct diomp_plugin_table *table);

#ifdef __cplusplus
}
#endif
