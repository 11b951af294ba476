//===-- Variables.cpp - Tells the runtime of declare target data *- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A variable that is `declare target` has its copy in the device's image, so
// it passes no allocation. libomptarget knows it by the entry of the host's
// side, which has its address and size, and by the mapping that it makes of the
// entry when it loads the image. The DiOMP runtime asks for the entries here,
// and for the mapping through omp_get_mapped_ptr.
//
//===----------------------------------------------------------------------===//

#include "PluginManager.h"
#include "omptarget.h"

#include "offload/variable_table.h"

#include <dlfcn.h>
#include <mutex>

/// Of omptarget.cpp: what every target construct begins with. True: the device
/// is not to be used.
extern bool checkDeviceAndCtors(int64_t &DeviceID, ident_t *Loc);

namespace {

/// Has a copy under its own address: a `link` entry is that of a pointer of the
/// compiler's, and an indirect one is a function's.
bool isVariable(const __tgt_offload_entry &Entry) {
  return Entry.size > 0 && Entry.addr &&
         !(Entry.flags & (OMP_DECLARE_TARGET_LINK |
                          OMP_DECLARE_TARGET_INDIRECT | OMP_REGISTER_REQUIRES));
}

/// The first list grows with every library that comes, the map shrinks with
/// every one that goes.
uint64_t countLibraries() {
  if (!PM)
    return 0;
  std::lock_guard<std::mutex> Lock(PM->TrlTblMtx);
  return (uint64_t{PM->HostEntriesBeginRegistrationOrder.size()} << 32) |
         PM->HostEntriesBeginToTransTable.size();
}

void visitVariables(diomp_take_variable Take, void *Argument) {
  // The manager comes with the first image and goes with the last one.
  if (!PM)
    return;
  std::lock_guard<std::mutex> Lock(PM->TrlTblMtx);
  for (const auto &[Begin, Table] : PM->HostEntriesBeginToTransTable)
    for (const __tgt_offload_entry *Entry = Table.HostTable.EntriesBegin;
         Entry != Table.HostTable.EntriesEnd; ++Entry)
      if (isVariable(*Entry))
        Take(Argument, Entry->addr, Entry->size, Entry->name);
}

int32_t loadImages(int32_t Device) {
  if (!PM || Device < 0 || Device >= PM->getNumDevices())
    return 0;
  int64_t Id = Device;
  return checkDeviceAndCtors(Id, /*Loc=*/nullptr) ? 0 : 1;
}

const diomp_variable_table Table{DIOMP_VARIABLE_TABLE_VERSION, countLibraries,
                                 visitVariables, loadImages};

} // namespace

static void handOver(const diomp_variable_table *What) {
  if (auto Take = reinterpret_cast<diomp_offload_variables_function>(
          dlsym(RTLD_DEFAULT, "diomp_offload_variables")))
    Take(What);
}

/// Named on the linker's command line: nothing else would bring this file out
/// of its archive.
extern "C" __attribute__((constructor)) void diompHandOverVariables() {
  handOver(&Table);
}

// NOLINTBEGIN(bugprone-reserved-identifier): the linker makes these names.
#define REAL(Name) __real__ZN13PluginManager##Name
#define WRAP(Name) __wrap__ZN13PluginManager##Name

extern "C" void REAL(6deinitEv)(PluginManager *Manager);

/// The last image goes: devices end, and with them the copies that other ranks
/// reach.
extern "C" void WRAP(6deinitEv)(PluginManager *Manager) {
  handOver(nullptr);
  REAL(6deinitEv)(Manager);
}
// NOLINTEND(bugprone-reserved-identifier)
