//===-- Devices.cpp - Tells the runtime what device numbers mean *- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// OpenMP's device numbers are internal to libomptarget, whose interface does
// not return the plugin of a device. The DiOMP runtime needs it, because GPUs
// are shared by the ranks of a node and host devices are not.
//
//===----------------------------------------------------------------------===//

#include "PluginManager.h"
#include "Runtime.h"

#include "offload/device_names.h"

#include <dlfcn.h>

using namespace llvm;

const char *
diomp::nameOfPlugin(const omp::target::plugin::GenericPluginTy &Plugin) {
  switch (Plugin.getTripleArch()) {
  case Triple::nvptx64:
    return "cuda";
  case Triple::amdgcn:
    return "amdgpu";
  default:
    return Plugin.getName();
  }
}

static int32_t nameDevice(int32_t Device, const char **Plugin,
                          int32_t *PluginDevice) {
  // The manager exists from the first image to the last one.
  if (!PM || Device < 0)
    return 0;
  auto Devices = PM->getExclusiveDevicesAccessor();
  if (static_cast<size_t>(Device) >= Devices->size())
    return 0;
  const DeviceTy &Found = *(*Devices)[Device];
  *Plugin = diomp::nameOfPlugin(*Found.RTL);
  *PluginDevice = Found.RTLDeviceID;
  return 1;
}

/// Named on the linker's command line; no other reference pulls this file out
/// of its archive.
extern "C" __attribute__((constructor)) void diompHandOverDevices() {
  if (auto Callback = reinterpret_cast<diomp_offload_devices_function>(
          dlsym(RTLD_DEFAULT, "diomp_offload_devices")))
    Callback(nameDevice);
}
