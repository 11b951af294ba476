//===-- Remote.cpp - A device of another host -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements LLVM's device interface on the runtime's queues. Only
// synchronisation and loading images block.
//
//===----------------------------------------------------------------------===//

#include "GlobalHandler.h"
#include "Offload.h"
#include "Runtime.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Frontend/OpenMP/OMPDeviceConstants.h"
#include "llvm/Frontend/OpenMP/OMPGridValues.h"
#include "llvm/Object/ELFObjectFile.h"

#include <string>
#include <vector>

using namespace llvm;
using namespace llvm::omp;
using namespace llvm::omp::target::plugin;

namespace {

Error check(int Code) {
  return Code < 0 ? diomp::remoteError() : Plugin::success();
}

void *toPointer(uint64_t Address) { return reinterpret_cast<void *>(Address); }
uint64_t toNumber(const void *Pointer) {
  return reinterpret_cast<uint64_t>(Pointer);
}

/// Returns the queue of an operation, created on first use.
void *queueOf(AsyncInfoWrapperTy &AsyncInfo, int32_t DeviceId) {
  void *Queue = AsyncInfo.getQueueAs<void *>();
  if (!Queue) {
    Queue = diomp::remoteTable()->queue(DeviceId);
    AsyncInfo.setQueueAs<void *>(Queue);
  }
  return Queue;
}

/// An image and the device addresses of its symbols.
struct RemoteImageTy final : DeviceImageTy {
  using DeviceImageTy::DeviceImageTy;
  StringMap<uint64_t> Addresses;
};

struct RemoteKernelTy final : diomp::KernelBase {
  explicit RemoteKernelTy(const char *Name) : diomp::KernelBase(Name) {}

  Error initImpl(GenericDeviceTy &Device, DeviceImageTy &Image) override {
    GlobalTy Function(getName(), 0);
    if (auto Err = Device.Plugin.getGlobalHandler().getGlobalMetadataFromDevice(
            Device, Image, Function))
      return Err;
    Address = toNumber(Function.getPtr());
    // Buffers for reductions of GPUs are allocated on the service's side.
    KernelEnvironment.Configuration.ReductionDataSize = 0;
    // In generic mode a warp is added to thread limits; only the service's side
    // does it.
    KernelEnvironment.Configuration.ExecMode = OMP_TGT_EXEC_MODE_SPMD;
    KernelEnvironment.Configuration.MayUseNestedParallelism = 2; // Unknown.
    KernelEnvironment.Configuration.UseGenericStateMachine = 2;
    MaxNumThreads = 1;
    return Plugin::success();
  }

  Error launchImpl(GenericDeviceTy &Device, diomp::ThreadCounts,
                   diomp::BlockCounts, KernelArgsTy &KernelArgs,
                   KernelLaunchParamsTy LaunchParams,
                   AsyncInfoWrapperTy &AsyncInfo) const override {
    diomp_remote_launch Launch{};
    Launch.kernel = Address;
    Launch.version = KernelArgs.Version;
    std::copy_n(KernelArgs.NumTeams, 3, Launch.num_teams);
    std::copy_n(KernelArgs.ThreadLimit, 3, Launch.thread_limit);
    Launch.trip_count = KernelArgs.Tripcount;
    Launch.dynamic_memory_bytes = KernelArgs.DynCGroupMem;
    Launch.arguments = LaunchParams.Data;
    Launch.num_arguments = LaunchParams.Size / sizeof(void *);
    return check(diomp::remoteTable()->launch(
        queueOf(AsyncInfo, Device.getDeviceId()), &Launch));
  }

private:
  uint64_t Address = 0;
};

struct RemoteDeviceTy final : diomp::DeviceBase {
  RemoteDeviceTy(GenericPluginTy &Plugin, int32_t DeviceId, int32_t NumDevices)
      : diomp::DeviceBase(Plugin, DeviceId, NumDevices, Grid) {
    diomp::remoteTable()->describe(DeviceId, &About);
  }

  Error initImpl(GenericPluginTy &) override { return Plugin::success(); }
  Error deinitImpl() override { return Plugin::success(); }
  Error setContext() override { return Plugin::success(); }
  std::string getComputeUnitKind() const override { return About.kind; }

  Expected<GenericKernelTy &> constructKernel(const char *Name) override {
    auto *Kernel = Plugin.allocate<RemoteKernelTy>();
    if (!Kernel)
      return diomp::makeError("no memory for a kernel");
    new (Kernel) RemoteKernelTy(Name);
    return *Kernel;
  }

  Expected<DeviceImageTy *> loadImage(diomp::ImageSource Source,
                                      int32_t ImageId) override {
    auto *Image = Plugin.allocate<RemoteImageTy>();
    new (Image) RemoteImageTy(ImageId, *this, std::move(Source));
    std::vector<std::string> Names;
    std::vector<uint64_t> Sizes;
    if (auto Err = collectSymbols(*Image, Names, Sizes))
      return std::move(Err);
    std::vector<const char *> Texts;
    for (const std::string &Name : Names)
      Texts.push_back(Name.c_str());
    std::vector<uint64_t> Addresses(Names.size());
    if (diomp::remoteTable()->load(DeviceId, Image->getStart(),
                                   Image->getSize(), Texts.data(), Sizes.data(),
                                   Texts.size(), Addresses.data()) < 0)
      return diomp::remoteError();
    for (size_t I = 0; I < Names.size(); ++I)
      if (Addresses[I])
        Image->Addresses[Names[I]] = Addresses[I];
    return Image;
  }

  Expected<void *> allocateMemory(size_t Size, TargetAllocTy Kind) override {
    // The host cannot access the memory of another host.
    if (Size == 0 || Kind == TARGET_ALLOC_HOST || Kind == TARGET_ALLOC_SHARED)
      return nullptr;
    uint64_t Address = diomp::remoteTable()->allocate(DeviceId, Size);
    if (!Address)
      return diomp::remoteError();
    return toPointer(Address);
  }
  Error freeMemory(void *TgtPtr) override {
    return diomp::remoteTable()->release(DeviceId, toNumber(TgtPtr)) == 0
               ? Plugin::success()
               : diomp::remoteError();
  }

  Expected<void *> dataLockImpl(void *HstPtr, int64_t) override {
    return HstPtr;
  }
  Error dataUnlockImpl(void *) override { return Plugin::success(); }
  Expected<bool> isPinnedPtrImpl(void *, void *&, void *&,
                                 size_t &) const override {
    return false;
  }

  Error dataSubmitImpl(void *TgtPtr, const void *HstPtr, int64_t Size,
                       AsyncInfoWrapperTy &AsyncInfo) override {
    return check(diomp::remoteTable()->put(queueOf(AsyncInfo, DeviceId),
                                           toNumber(TgtPtr), HstPtr, Size));
  }
  Error dataRetrieveImpl(void *HstPtr, const void *TgtPtr, int64_t Size,
                         AsyncInfoWrapperTy &AsyncInfo) override {
    return check(diomp::remoteTable()->get(queueOf(AsyncInfo, DeviceId), HstPtr,
                                           toNumber(TgtPtr), Size));
  }
  Error dataExchangeImpl(const void *SrcPtr, GenericDeviceTy &DstDevice,
                         void *DstPtr, int64_t Size,
                         AsyncInfoWrapperTy &AsyncInfo) override {
    return check(diomp::remoteTable()->copy(
        queueOf(AsyncInfo, DeviceId), DstDevice.getDeviceId(), toNumber(DstPtr),
        toNumber(SrcPtr), Size));
  }

  Error waitFor(__tgt_async_info &AsyncInfo) override {
    void *Queue = AsyncInfo.Queue;
    AsyncInfo.Queue = nullptr;
    return check(diomp::remoteTable()->wait(Queue));
  }
  Error queryAsyncImpl(__tgt_async_info &AsyncInfo) override {
    int Done = diomp::remoteTable()->query(AsyncInfo.Queue);
    // A failed queue returns its error again when it is synchronised.
    if (Done > 0)
      AsyncInfo.Queue = nullptr;
    return check(Done);
  }

  Error initAsyncInfoImpl(AsyncInfoWrapperTy &AsyncInfo) override {
    queueOf(AsyncInfo, DeviceId);
    return Plugin::success();
  }

  Error createEventImpl(void **Event) override {
    *Event = diomp::remoteTable()->event();
    return Plugin::success();
  }
  Error destroyEventImpl(void *Event) override {
    diomp::remoteTable()->forget_event(Event);
    return Plugin::success();
  }
  Error recordEventImpl(void *Event, AsyncInfoWrapperTy &AsyncInfo) override {
    return check(diomp::remoteTable()->record_event(
        Event, queueOf(AsyncInfo, DeviceId)));
  }
  Error waitEventImpl(void *Event, AsyncInfoWrapperTy &AsyncInfo) override {
    return check(
        diomp::remoteTable()->wait_event(Event, queueOf(AsyncInfo, DeviceId)));
  }
  Error syncEventImpl(void *Event) override {
    void *Queue = diomp::remoteTable()->queue(DeviceId);
    Error Err = check(diomp::remoteTable()->wait_event(Event, Queue));
    Error Waited = check(diomp::remoteTable()->wait(Queue));
    return joinErrors(std::move(Err), std::move(Waited));
  }

  void describe(diomp::FactVisitor Visit) override {
    Visit("Device Type", "Remote");
    Visit("Host", About.host);
    Visit("Kind", About.kind);
    Visit("Name", About.name);
    Visit("ELF Machine", std::to_string(About.elf_machine));
    Visit("Threads", std::to_string(About.num_threads));
    Visit("Global Memory Size", std::to_string(About.memory_bytes) + " bytes");
  }

  Error getDeviceMemorySize(uint64_t &Size) override {
    Size = About.memory_bytes;
    return Plugin::success();
  }
  Error getDeviceStackSize(uint64_t &Value) override {
    Value = 0;
    return Plugin::success();
  }
  Error setDeviceStackSize(uint64_t) override { return Plugin::success(); }

private:
  /// Collects names and sizes of all symbols that the image defines, so that
  /// one request resolves all addresses.
  static Error collectSymbols(const DeviceImageTy &Image,
                              std::vector<std::string> &Names,
                              std::vector<uint64_t> &Sizes) {
    auto File = object::ELF64LEObjectFile::create(Image.getMemoryBuffer());
    if (!File)
      return File.takeError();
    auto Add = [&](const object::ELFSymbolRef &Symbol) -> Error {
      auto Flags = Symbol.getFlags();
      if (!Flags)
        return Flags.takeError();
      auto Name = Symbol.getName();
      if (!Name)
        return Name.takeError();
      if (!(*Flags & object::SymbolRef::SF_Undefined) && !Name->empty()) {
        Names.push_back(Name->str());
        Sizes.push_back(Symbol.getSize());
      }
      return Error::success();
    };
    for (object::ELFSymbolRef Symbol : File->getDynamicSymbolIterators())
      if (auto Err = Add(Symbol))
        return Err;
    // Images for GPUs need not have a dynamic table.
    if (Names.empty())
      for (object::ELFSymbolRef Symbol : File->symbols())
        if (auto Err = Add(Symbol))
          return Err;
    return Error::success();
  }

  static constexpr llvm::omp::GV Grid = {1, 1, 1, 1, 1, 1, 1};
  diomp_remote_device About;
};

struct RemoteGlobalHandlerTy final : GenericGlobalHandlerTy {
  Error getGlobalMetadataFromDevice(GenericDeviceTy &, DeviceImageTy &Image,
                                    GlobalTy &Global) override {
    auto &Remote = static_cast<RemoteImageTy &>(Image);
    auto Found = Remote.Addresses.find(Global.getName());
    if (Found == Remote.Addresses.end())
      return diomp::makeError("the image has no symbol '%s'",
                              Global.getName().c_str());
    Global.setPtr(toPointer(Found->second));
    return Plugin::success();
  }
};

} // namespace

GenericDeviceTy *diomp::createRemoteDevice(GenericPluginTy &Plugin,
                                           int32_t DeviceId,
                                           int32_t NumDevices) {
  return new RemoteDeviceTy(Plugin, DeviceId, NumDevices);
}

GenericGlobalHandlerTy *diomp::createRemoteGlobalHandler() {
  return new RemoteGlobalHandlerTy();
}
