// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which variables of the program are `declare target`. Only libomptarget knows: they stand in the
// images' tables of entries, with sizes, and their copies come with an image, not from an
// allocation. When it is loaded it looks for the symbol diomp_offload_variables in libdiomp.so with
// dlsym and hands its table over; see table.h for the rules of the layout.
#pragma once

#include <stdint.h>

#define DIOMP_VARIABLE_TABLE_VERSION 1

#ifdef __cplusplus
extern "C" {
#endif

/// Is told one variable of the host's side. `name` is the linker's, and only lent.
typedef void (*diomp_take_variable)(void *argument, const void *host, uint64_t nbytes,
                                    const char *name);

/// Any thread, but not in handlers of messages: they take locks that are held while an image is
/// loaded.
struct diomp_variable_table {
    uint32_t version;
    /// Changes with what visit() finds.
    uint64_t (*generation)(void);
    /// Calls `take` for each variable that has copies on devices. `take` must not call OpenMP.
    void (*visit)(diomp_take_variable take, void *argument);
    /// Brings the program's images to a device, as its first target region does, if they are not
    /// there: 1. 0: there is no such device, or it does not take them.
    int32_t (*load)(int32_t device);
};

/// Takes the table before the program's own code, and null before libomptarget ends its devices.
typedef void (*diomp_offload_variables_function)(const struct diomp_variable_table *table);

#ifdef __cplusplus
}
#endif
