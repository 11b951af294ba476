// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which device of which plugin stands behind OpenMP's device numbers. Only libomptarget knows: the
// numbers follow the images of the program, in the order in which they are registered. When it is
// loaded it looks for the symbol diomp_offload_devices in libdiomp.so with dlsym and hands its
// function over; nothing happens where there is none.
//
// Plain C types: the two libraries may be of different builds.
#pragma once

#include <stdint.h>

/// The plugin of devices of other hosts (llvm/plugin/diomp).
#define DIOMP_REMOTE_PLUGIN "diomp"

#ifdef __cplusplus
extern "C" {
#endif

/// 1, and what the number stands for: the plugin as LLVM calls it ("x86_64", "cuda", "amdgpu"; the
/// text is the plugin's) and the device among those of its plugin. 0: there is no such device now;
/// there may be when further images are loaded. Any thread; does not block.
typedef int32_t (*diomp_device_name_function)(int32_t device, const char **plugin,
                                              int32_t *plugin_device);

/// Takes the function, for as long as the process lives. Once, before the program's own code.
typedef void (*diomp_offload_devices_function)(diomp_device_name_function names);

#ifdef __cplusplus
}
#endif
