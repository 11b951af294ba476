//===-- Variables.cpp - Tells the runtime of declare target data *- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A `declare target` variable has its copy in the device's image, so no
// allocation is made for it. libomptarget has its host entry, with address and
// size, and the mapping that it creates for the entry when it loads the image.
// The DiOMP runtime reads the entries here, and the mapping through
// omp_get_mapped_ptr.
//
//===----------------------------------------------------------------------===//

#include "Offload.h"
#include "PinnedCopies.h"
#include "PluginManager.h"
#include "omptarget.h"

#include "offload/variable_table.h"

#include <dlfcn.h>
#include <mutex>

namespace {

/// Whether the entry has a copy under its own address: a `link` entry is that
/// of a compiler-generated pointer, an indirect one is a function's.
bool isVariable(const diomp::OffloadEntry &Entry) {
  return diomp::isOfOpenMP(Entry) && diomp::sizeOf(Entry) > 0 &&
         diomp::addressOf(Entry) &&
         !(diomp::flagsOf(Entry) &
           (OMP_DECLARE_TARGET_LINK | OMP_DECLARE_TARGET_INDIRECT |
            OMP_REGISTER_REQUIRES));
}

/// Changes with the set of libraries: the first list grows with each library
/// that is loaded, the map shrinks with each one that is unloaded.
uint64_t countLibraries() {
  if (!PM)
    return 0;
  std::lock_guard<std::mutex> Lock(PM->TrlTblMtx);
  return (uint64_t{PM->HostEntriesBeginRegistrationOrder.size()} << 32) |
         PM->HostEntriesBeginToTransTable.size();
}

void visitVariables(diomp_take_variable Callback, void *Argument) {
  // The manager exists from the first image to the last one.
  if (!PM)
    return;
  std::lock_guard<std::mutex> Lock(PM->TrlTblMtx);
  for (const auto &[Begin, Table] : PM->HostEntriesBeginToTransTable)
    for (const diomp::OffloadEntry *Entry = Table.HostTable.EntriesBegin;
         Entry != Table.HostTable.EntriesEnd; ++Entry)
      if (isVariable(*Entry))
        Callback(Argument, diomp::addressOf(*Entry), diomp::sizeOf(*Entry),
                 diomp::nameOf(*Entry));
}

int32_t loadImages(int32_t Device) {
  if (!PM || Device < 0 || Device >= PM->getNumDevices())
    return 0;
  return diomp::loadImagesOf(*PM, Device) ? 1 : 0;
}

const diomp_variable_table Table{DIOMP_VARIABLE_TABLE_VERSION, countLibraries,
                                 visitVariables, loadImages};

} // namespace

static void publishTable(const diomp_variable_table *What) {
  if (auto Callback = reinterpret_cast<diomp_offload_variables_function>(
          dlsym(RTLD_DEFAULT, "diomp_offload_variables")))
    Callback(What);
}

/// Named on the linker's command line; no other reference pulls this file out
/// of its archive.
extern "C" __attribute__((constructor)) void diompHandOverVariables() {
  publishTable(&Table);
}

// NOLINTBEGIN(bugprone-reserved-identifier): the linker makes these names.
#define REAL(Name) __real__ZN13PluginManager##Name
#define WRAP(Name) __wrap__ZN13PluginManager##Name

extern "C" void REAL(6deinitEv)(PluginManager *Manager);

/// The last image is unloaded: devices end, and with them the copies that other
/// ranks access.
extern "C" void WRAP(6deinitEv)(PluginManager *Manager) {
  publishTable(nullptr);
  diomp::endPinnedCopies();
  REAL(6deinitEv)(Manager);
}
// NOLINTEND(bugprone-reserved-identifier)
