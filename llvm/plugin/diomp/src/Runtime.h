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

/// The runtime's name for the plugin: "cuda", "amdgpu", otherwise LLVM's
/// ("x86_64"). LLVM's own names for GPUs depend on build settings and are in
/// capitals.
const char *
nameOfPlugin(const llvm::omp::target::plugin::GenericPluginTy &Plugin);

/// The runtime's table; null if no runtime of this version is loaded.
const diomp_offload_table *runtimeTable();
/// Replaces the runtime that is looked for.
void setRuntimeTable(const diomp_offload_table &Table);

/// The table for remote devices if the environment configures some, otherwise
/// null. Loads libdiomp.so into programs that do not use it.
const diomp_remote_table *remoteTable();

/// Creates the local object for a remote device.
llvm::omp::target::plugin::GenericDeviceTy *
createRemoteDevice(llvm::omp::target::plugin::GenericPluginTy &Plugin,
                   int32_t DeviceId, int32_t NumDevices);

/// Creates the handler that resolves symbols of images on remote devices.
llvm::omp::target::plugin::GenericGlobalHandlerTy *createRemoteGlobalHandler();

/// An error with the message of the runtime's last error.
llvm::Error remoteError();

} // namespace diomp

#endif
