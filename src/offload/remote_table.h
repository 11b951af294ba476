// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the plugin of remote devices in libomptarget.so asks of libdiomp.so. It looks for the symbol
// diomp_remote_table with dlsym and loads the library where the program has not; see table.h for
// the other direction and for the rules of the layout.
//
// Devices are numbered from 0. Functions that return int give 0 for success and -1 for an error,
// unless they say otherwise; failure() has the sentence. Any thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define DIOMP_REMOTE_TABLE_VERSION 3
/// A variable that is set while libdiomp.so is loaded for this table: then its runtime does not
/// start by itself, which would make a rank that others wait for of a program that knows of none.
#define DIOMP_REMOTE_LOADING "DIOMP_LAUNCH_NO_START"

#ifdef __cplusplus
extern "C" {
#endif

struct diomp_remote_device {
    const char *host;
    const char *kind;
    const char *name;
    uint32_t elf_machine; ///< EM_* of its images
    uint32_t num_threads;
    uint64_t memory_bytes;
};

struct diomp_remote_launch {
    uint64_t kernel;
    uint32_t version; ///< of LLVM's KernelArgsTy
    uint32_t num_teams[3];
    uint32_t thread_limit[3];
    uint64_t trip_count;
    uint32_t dynamic_memory_bytes;
    const void *arguments; ///< 8 bytes each
    size_t num_arguments;
};

struct diomp_remote_table {
    uint32_t version;
    /// Whether the environment asks for remote devices. Nothing else may be called if not.
    int (*wanted)(void);
    /// Connects to the services; the number of devices. -1: none can be had. Blocks.
    int (*open)(void);
    /// Ends the sessions. All queues must have been waited for. Blocks for some seconds at most.
    void (*close)(void);
    /// The sentence of the calling thread's last error.
    const char *(*failure)(void);
    /// The strings live until close().
    int (*describe)(int device, struct diomp_remote_device *into);
    /// Memory on the device, at an address that means nothing here; 0: no room.
    uint64_t (*allocate)(int device, uint64_t nbytes);
    int (*release)(int device, uint64_t address);
    /// Addresses of the image's symbols, 0 for those that it has not. Blocks.
    int (*load)(int device, const void *image, uint64_t nbytes, const char *const *names,
                const uint64_t *sizes, size_t num_symbols, uint64_t *addresses);
    /// A queue of the device; wait() and a query() that says 1 end it.
    void *(*queue)(int device);
    /// These post and do not wait; host memory is in use until the queue has ended.
    int (*put)(void *queue, uint64_t to, const void *from, uint64_t nbytes);
    int (*get)(void *queue, void *to, uint64_t from, uint64_t nbytes);
    int (*copy)(void *queue, int to_device, uint64_t to, uint64_t from, uint64_t nbytes);
    int (*launch)(void *queue, const struct diomp_remote_launch *launch);
    int (*wait)(void *queue);
    /// 1: all is done. 0: not yet.
    int (*query)(void *queue);
    /// Events: of what a queue has been given so far.
    void *(*event)(void);
    void (*forget_event)(void *event);
    int (*record_event)(void *event, void *queue);
    int (*wait_event)(void *event, void *queue);
    /// What images of the device's ELF machine must be for, as LLVM calls it: "sm_90", "gfx90a";
    /// "": nothing in particular. Lives until close().
    const char *(*architecture)(int device);
    /// Whether anything has been done on a device, or this process is not the one to say that.
    int (*used)(void);
};

typedef const struct diomp_remote_table *(*diomp_remote_table_function)(void);

#ifdef __cplusplus
}
#endif
