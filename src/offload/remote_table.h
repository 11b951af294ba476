// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The functions of libdiomp.so that the plugin for remote devices in libomptarget.so calls. The
// plugin looks up the symbol diomp_remote_table with dlsym and loads the library if the program has
// not; see table.h for the opposite direction and for the layout rules.
//
// Devices are numbered from 0. Functions that return int return 0 for success and -1 for an error,
// unless stated otherwise; failure() returns the message. Thread-safe.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define DIOMP_REMOTE_TABLE_VERSION 3
/// An environment variable that is set while libdiomp.so is loaded for this table. The runtime then
/// does not start by itself: it would join the program to the job as a rank, although the program
/// does not use DiOMP.
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
    uint32_t version; ///< version of LLVM's KernelArgsTy
    uint32_t num_teams[3];
    uint32_t thread_limit[3];
    uint64_t trip_count;
    uint32_t dynamic_memory_bytes;
    const void *arguments; ///< 8 bytes each
    size_t num_arguments;
};

struct diomp_remote_table {
    uint32_t version;
    /// Whether the environment configures remote devices. If not, no other function may be called.
    int (*wanted)(void);
    /// Connects to the services and returns the number of devices; -1: none is available. Blocks.
    int (*open)(void);
    /// Ends the sessions. The caller must have waited for all queues. Blocks for at most some
    /// seconds.
    void (*close)(void);
    /// The message of the calling thread's last error.
    const char *(*failure)(void);
    /// Describes a device. The strings are valid until close().
    int (*describe)(int device, struct diomp_remote_device *into);
    /// Allocates memory on the device; the address is not valid in this process. 0: no memory.
    uint64_t (*allocate)(int device, uint64_t nbytes);
    int (*release)(int device, uint64_t address);
    /// Loads an image and returns the addresses of its symbols; 0 for a missing symbol. Blocks.
    int (*load)(int device, const void *image, uint64_t nbytes, const char *const *names,
                const uint64_t *sizes, size_t num_symbols, uint64_t *addresses);
    /// Creates a queue of the device. wait(), or a query() that returns 1, destroys it.
    void *(*queue)(int device);
    /// Enqueue operations and return; host memory stays in use until the queue has completed.
    int (*put)(void *queue, uint64_t to, const void *from, uint64_t nbytes);
    int (*get)(void *queue, void *to, uint64_t from, uint64_t nbytes);
    int (*copy)(void *queue, int to_device, uint64_t to, uint64_t from, uint64_t nbytes);
    int (*launch)(void *queue, const struct diomp_remote_launch *launch);
    int (*wait)(void *queue);
    /// 1: complete. 0: not yet.
    int (*query)(void *queue);
    /// Creates an event, which record_event sets to the operations enqueued so far.
    void *(*event)(void);
    void (*forget_event)(void *event);
    int (*record_event)(void *event, void *queue);
    int (*wait_event)(void *event, void *queue);
    /// The architecture that images for the device must target, by LLVM's name: "sm_90", "gfx90a";
    /// "": any of its ELF machine. Valid until close().
    const char *(*architecture)(int device);
    /// Whether any operation ran on a device. Also true in a process that must not report unused
    /// devices.
    int (*used)(void);
};

typedef const struct diomp_remote_table *(*diomp_remote_table_function)(void);

#ifdef __cplusplus
}
#endif
