// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Maps OpenMP's device numbers to devices of LLVM's plugins. Only libomptarget has this mapping:
// numbers follow the program's device images in the order of their registration. When libomptarget
// is loaded, it looks up the symbol diomp_offload_devices in libdiomp.so with dlsym and passes its
// function; without the symbol nothing happens.
//
// Plain C types, since the two libraries may come from different builds.
#pragma once

#include <stdint.h>

/// The plugin for devices of other hosts (llvm/plugin/diomp).
#define DIOMP_REMOTE_PLUGIN "diomp"

#ifdef __cplusplus
extern "C" {
#endif

/// Returns 1 and the plugin and device of an OpenMP device number: LLVM's name for the plugin
/// ("x86_64", "cuda", "amdgpu"; the text belongs to the plugin) and the device's index within the
/// plugin. Returns 0 if there is no such device at present; loading further images may add it.
/// Thread-safe; does not block.
typedef int32_t (*diomp_device_name_function)(int32_t device, const char **plugin,
                                              int32_t *plugin_device);

/// Receives the function, which stays valid for the life of the process. Called once, before the
/// program's own code.
typedef void (*diomp_offload_devices_function)(diomp_device_name_function names);

#ifdef __cplusplus
}
#endif
