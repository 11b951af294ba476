//===-- Offload.h - What the plugin needs of LLVM 19 ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// ../README.md says what each version's file must have.
//
//===----------------------------------------------------------------------===//

#ifndef DIOMP_VERSION_OFFLOAD_H
#define DIOMP_VERSION_OFFLOAD_H

#include "../Until21.h"
#include "PluginInterface.h"
#include "omptarget.h"

/// Defined in omptarget.cpp; every target construct begins with it. True: the
/// device must not be used.
extern bool checkDeviceAndCtors(int64_t &DeviceID, ident_t *Loc);

namespace diomp {

constexpr int LLVMVersion = 19;

using namespace llvm::omp::target::plugin;

// Entries of a program.

using OffloadEntry = __tgt_offload_entry;
inline bool isOfOpenMP(const OffloadEntry &) { return true; }
inline void *addressOf(const OffloadEntry &Entry) { return Entry.addr; }
inline const char *nameOf(const OffloadEntry &Entry) { return Entry.name; }
inline uint64_t sizeOf(const OffloadEntry &Entry) { return Entry.size; }
inline int64_t flagsOf(const OffloadEntry &Entry) { return Entry.flags; }
inline int64_t dataOf(const OffloadEntry &Entry) { return Entry.data; }
/// Whether it reads entries of LLVM 21 and newer.
constexpr bool ReadsLaterEntries = false;

/// Loads the images of the program that OpenMP's device has not loaded yet.
template <typename ManagerTy> bool loadImagesOf(ManagerTy &, int32_t Device) {
  int64_t Id = Device;
  return !checkDeviceAndCtors(Id, /*Loc=*/nullptr);
}

// Errors.

template <typename... ArgsTy>
llvm::Error makeError(const char *Format, ArgsTy... Args) {
  return Plugin::error(Format, Args...);
}

// Kernels and devices of the plugin.

/// Whether a kernel's arguments are not those of a target region.
inline bool hasRawArguments(const KernelArgsTy &) { return false; }

using ThreadCounts = uint32_t;
using BlockCounts = uint64_t;

/// The functions of a device whose signatures depend on the version.
struct DeviceBase : EarlierDevice {
  using EarlierDevice::EarlierDevice;

  llvm::Error obtainInfoImpl(InfoQueueTy &Info) final {
    describe([&](const char *Key, const std::string &Value) {
      Info.add(Key, Value);
    });
    return Plugin::success();
  }
};

} // namespace diomp

#endif
