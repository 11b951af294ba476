//===-- Plugin.cpp - The plugin of remote devices ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM's build creates one object per plugin. Ours has no devices yet: it
// accepts no image, so libomptarget never initialises it. Devices of other
// ranks will be added here.
//
//===----------------------------------------------------------------------===//

#include "PluginInterface.h"

#include "llvm/BinaryFormat/ELF.h"

using namespace llvm;
using namespace llvm::omp::target::plugin;

namespace {

struct DiompPluginTy final : GenericPluginTy {
  DiompPluginTy() : GenericPluginTy(Triple::UnknownArch) {}

  Expected<int32_t> initImpl() override { return 0; }
  Error deinitImpl() override { return Plugin::success(); }
  GenericDeviceTy *createDevice(GenericPluginTy &, int32_t, int32_t) override {
    llvm_unreachable("a plugin without devices");
  }
  GenericGlobalHandlerTy *createGlobalHandler() override {
    llvm_unreachable("a plugin without devices");
  }
  uint16_t getMagicElfBits() const override { return ELF::EM_NONE; }
  Triple::ArchType getTripleArch() const override {
    return Triple::UnknownArch;
  }
  const char *getName() const override { return "diomp"; }
  Expected<bool> isELFCompatible(uint32_t, StringRef) const override {
    return false;
  }
};

} // namespace

extern "C" GenericPluginTy *createPlugin_diomp() { return new DiompPluginTy(); }
