// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Enumerates the program's `declare target` variables. Only libomptarget has this information: the
// variables are listed in the images' entry tables, with sizes, and their copies come with an
// image, not from an allocation. When libomptarget is loaded, it looks up the symbol
// diomp_offload_variables in libdiomp.so with dlsym and passes its table; see table.h for the
// layout rules.
#pragma once

#include <stdint.h>

#define DIOMP_VARIABLE_TABLE_VERSION 1

#ifdef __cplusplus
extern "C" {
#endif

/// Receives one variable on the host. `name` is its symbol name, valid during the call.
typedef void (*diomp_take_variable)(void *argument, const void *host, uint64_t nbytes,
                                    const char *name);

/// Thread-safe, but not for message handlers: the functions take locks that are held while an image
/// is loaded.
struct diomp_variable_table {
    uint32_t version;
    /// Changes when the result of visit() changes.
    uint64_t (*generation)(void);
    /// Calls `take` for each variable with copies on devices. `take` must not call OpenMP.
    void (*visit)(diomp_take_variable take, void *argument);
    /// Loads the program's images on a device if necessary, as its first target region would:
    /// returns 1. Returns 0 if there is no such device or it does not accept the images.
    int32_t (*load)(int32_t device);
};

/// Receives the table before the program's own code runs, and null before libomptarget ends its
/// devices.
typedef void (*diomp_offload_variables_function)(const struct diomp_variable_table *table);

#ifdef __cplusplus
}
#endif
