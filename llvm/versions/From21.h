//===-- From21.h - What LLVM 21 and newer share -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Parts of what README.md asks of a version's Offload.h: entries of a
// program, errors, the loading of images.
//
//===----------------------------------------------------------------------===//

#ifndef DIOMP_VERSIONS_FROM21_H
#define DIOMP_VERSIONS_FROM21_H

#include "PluginInterface.h"

#include <string>

namespace diomp {

using namespace llvm::omp::target::plugin;

// Entries of a program.

using OffloadEntry = llvm::offloading::EntryTy;
inline bool isOfOpenMP(const OffloadEntry &Entry) {
  return Entry.Kind == llvm::object::OffloadKind::OFK_OpenMP;
}
inline void *addressOf(const OffloadEntry &Entry) { return Entry.Address; }
inline const char *nameOf(const OffloadEntry &Entry) {
  return Entry.SymbolName;
}
inline uint64_t sizeOf(const OffloadEntry &Entry) { return Entry.Size; }
inline int64_t flagsOf(const OffloadEntry &Entry) { return Entry.Flags; }
inline int64_t dataOf(const OffloadEntry &Entry) {
  return static_cast<int64_t>(Entry.Data);
}
/// Whether it reads entries of LLVM 21 and newer. It translates older ones
/// (PluginManager::upgradeLegacyEntries()).
constexpr bool ReadsLaterEntries = true;

// Errors.

template <typename... ArgsTy>
llvm::Error makeError(const char *Format, ArgsTy... Args) {
  return Plugin::error(::error::ErrorCode::UNKNOWN, Format, Args...);
}

/// In the version's own file.
inline void report(const std::string &Text);

/// Whether a kernel's arguments are not those of a target region.
inline bool hasRawArguments(const KernelArgsTy &KernelArgs) {
  return KernelArgs.Flags.IsCUDA;
}

/// Loads the images of the program that OpenMP's device has not loaded yet.
template <typename ManagerTy>
bool loadImagesOf(ManagerTy &Manager, int32_t Device) {
  auto Found = Manager.getDevice(Device);
  if (Found)
    return true;
  report(toString(Found.takeError()));
  return false;
}

} // namespace diomp

#endif
