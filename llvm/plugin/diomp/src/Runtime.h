//===-- Runtime.h - The DiOMP runtime behind the plugin ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DIOMP_RUNTIME_H
#define DIOMP_RUNTIME_H

#include "PluginInterface.h"

#include "offload/remote_table.h"
#include "offload/table.h"

namespace diomp {

/// What the runtime calls the plugin: "cuda", "amdgpu", else as LLVM calls it
/// ("x86_64"), whose own names for GPUs are of build settings and in capitals.
const char *
nameOfPlugin(const llvm::omp::target::plugin::GenericPluginTy &Plugin);

/// The runtime's table, or null if no runtime of this version is loaded.
const diomp_offload_table *runtimeTable();

/// The table for remote devices if the environment asks for some, else null.
/// Programs that do not have libdiomp.so get it loaded.
const diomp_remote_table *remoteTable();

/// Creates a device that stands for a remote one.
llvm::omp::target::plugin::GenericDeviceTy *
createRemoteDevice(llvm::omp::target::plugin::GenericPluginTy &Plugin,
                   int32_t DeviceId, int32_t NumDevices);

/// Creates the handler that knows the symbols of images on remote devices.
llvm::omp::target::plugin::GenericGlobalHandlerTy *createRemoteGlobalHandler();

/// An error with the sentence of the runtime's last one.
llvm::Error remoteError();

} // namespace diomp

#endif
