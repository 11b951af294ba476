//===-- Plugin.cpp - The plugin of remote devices ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Devices of other hosts, numbered after LLVM's own. They may be of several
// architectures, which LLVM's plugins do not support. This file therefore
// decides which images the devices accept: the linker's --wrap redirects
// PluginManager's compatibility checks to it.
//
//===----------------------------------------------------------------------===//

#include "Offload.h"
#include "PluginManager.h"
#include "Runtime.h"

#include "offload/device_names.h"

#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Object/ELFObjectFile.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

using namespace llvm;
using namespace llvm::omp::target::plugin;

const diomp_remote_table *diomp::remoteTable() {
  static const diomp_remote_table *const Table =
      []() -> const diomp_remote_table * {
    const char *Services = std::getenv("DIOMP_REMOTE_DEVICES");
    if (!Services || !*Services)
      return nullptr;
    void *Symbol = dlsym(RTLD_DEFAULT, "diomp_remote_table");
    if (!Symbol) {
      // Next to the directory of this library, or in the system's search path.
      Dl_info Here{};
      std::string Path;
      if (dladdr(reinterpret_cast<void *>(&diomp::remoteTable), &Here))
        if (char *Resolved = realpath(Here.dli_fname, nullptr)) {
          Path = Resolved;
          std::free(Resolved);
        }
      Path.resize(Path.rfind('/') == std::string::npos ? 0 : Path.rfind('/'));
      // Usually before main, when no other thread reads the environment.
      setenv(DIOMP_REMOTE_LOADING, "1", 1);
      Path += "/../libdiomp.so.1";
      void *Library = dlopen(Path.c_str(), RTLD_NOW | RTLD_LOCAL);
      std::string Why = Library ? "" : dlerror();
      if (!Library)
        Library = dlopen("libdiomp.so.1", RTLD_NOW | RTLD_LOCAL);
      unsetenv(DIOMP_REMOTE_LOADING);
      if (!Library) {
        if (access(Path.c_str(), F_OK) != 0)
          Why = dlerror();
        std::fprintf(stderr, "diomp: error: no remote devices: %s\n",
                     Why.c_str());
        return nullptr;
      }
      Symbol = dlsym(Library, "diomp_remote_table");
    }
    auto Function = reinterpret_cast<diomp_remote_table_function>(Symbol);
    const diomp_remote_table *Found = Function ? Function() : nullptr;
    if (!Found || Found->version < DIOMP_REMOTE_TABLE_VERSION) {
      std::fprintf(stderr, "diomp: error: no remote devices: libdiomp.so is "
                           "older than libomptarget.so\n");
      return nullptr;
    }
    return Found;
  }();
  return Table;
}

Error diomp::remoteError() {
  return createStringError(inconvertibleErrorCode(), "%s",
                           diomp::remoteTable()->failure());
}

namespace {

struct DiompPluginTy final : GenericPluginTy {
  DiompPluginTy() : GenericPluginTy(Triple::UnknownArch) {}

  Expected<int32_t> initImpl() override {
    const int32_t Count = diomp::remoteTable()->open();
    if (Count < 0) {
      std::fprintf(stderr, "diomp: error: no remote devices: %s\n",
                   diomp::remoteTable()->failure());
      return 0;
    }
    Machines.resize(Count);
    HasImage.resize(Count, false);
    for (int32_t I = 0; I < Count; ++I) {
      diomp_remote_device About;
      diomp::remoteTable()->describe(I, &About);
      Machines[I] = About.elf_machine;
    }
    return Count;
  }
  Error deinitImpl() override {
    if (!diomp::remoteTable()->used())
      reportUnused();
    diomp::remoteTable()->close();
    return Plugin::success();
  }
  GenericDeviceTy *createDevice(GenericPluginTy &Plugin, int32_t DeviceId,
                                int32_t NumDevices) override {
    return diomp::createRemoteDevice(Plugin, DeviceId, NumDevices);
  }
  GenericGlobalHandlerTy *createGlobalHandler() override {
    return diomp::createRemoteGlobalHandler();
  }
  uint16_t getMagicElfBits() const override { return ELF::EM_NONE; }
  Triple::ArchType getTripleArch() const override {
    return Triple::UnknownArch;
  }
  const char *getName() const override { return DIOMP_REMOTE_PLUGIN; }
  Expected<bool> isELFCompatible(uint32_t, StringRef) const override {
    return false; // See accepts().
  }

  /// The machine of an image that is a little-endian 64-bit ELF file, otherwise
  /// EM_NONE.
  static uint16_t machineOf(StringRef Image) {
    ELF::Elf64_Ehdr Header;
    if (Image.size() < sizeof(Header))
      return ELF::EM_NONE;
    std::memcpy(&Header, Image.data(), sizeof(Header));
    if (!Header.checkMagic() || Header.getFileClass() != ELF::ELFCLASS64 ||
        Header.getDataEncoding() != ELF::ELFDATA2LSB)
      return ELF::EM_NONE;
    return Header.e_machine;
  }

  /// Whether a device of \p Architecture runs an image for its machine. LLVM's
  /// own plugins query their devices, which are remote here.
  static bool isFor(StringRef Image, StringRef Architecture) {
    auto File = object::ELF64LEObjectFile::create(MemoryBufferRef(Image, ""),
                                                  /*InitContent=*/false);
    if (!File) {
      consumeError(File.takeError());
      return true; // Loading the image reports a more precise error.
    }
    const StringRef Of = File->tryGetCPUName().value_or("");
    unsigned Own = 0, Needed = 0;
    if (Architecture.starts_with("sm_") &&
        !Architecture.substr(3).getAsInteger(10, Own) &&
        Of.starts_with("sm_") && !Of.substr(3).getAsInteger(10, Needed))
      return Own / 10 == Needed / 10 && Own >= Needed; // NVIDIA's rule
    return Architecture.empty() || Of.empty() || Of == Architecture;
  }

  bool accepts(int32_t DeviceId, StringRef Image) {
    if (machineOf(Image) != Machines[DeviceId] ||
        !isFor(Image, diomp::remoteTable()->architecture(DeviceId)))
      return false;
    HasImage[DeviceId] = true;
    ++NumWithImage;
    return true;
  }

  /// Reports devices without a matching image, after the images of a library
  /// have been offered to all devices.
  void reportIdleDevices() {
    for (size_t I = 0; I < HasImage.size(); ++I) {
      if (HasImage[I])
        continue;
      HasImage[I] = true; // Reported once.
      diomp_remote_device About;
      diomp::remoteTable()->describe(static_cast<int32_t>(I), &About);
      std::fprintf(stderr,
                   "diomp: warning: the remote device %zu (%s on %s) is not "
                   "used: the program has no image for its architecture "
                   "[remedy: compile with -fopenmp-targets= or "
                   "--offload-arch= for it as well]\n",
                   I, About.name, About.host);
    }
  }

private:
  /// Called at the end of a program that had devices with images.
  void reportUnused() {
    if (NumWithImage == 0)
      return; // See reportIdleDevices().
    const char *Offload = std::getenv("OMP_TARGET_OFFLOAD");
    const int32_t First = getUserId(0);
    const char *Remedy =
        Offload && StringRef(Offload).equals_insensitive("disabled")
            ? "OMP_TARGET_OFFLOAD is DISABLED"
        : First > 0 ? "name one in the device clause or by OMP_DEFAULT_DEVICE, "
                      "or set DIOMP_LOCAL_DEVICES=off so that they are the "
                      "only devices"
                    : "look for regions that were not reached, and for if "
                      "clauses";
    std::fprintf(stderr,
                 "diomp: warning: the program has not used its remote devices "
                 "(numbers %d to %d): no region ran there and no data was "
                 "mapped [remedy: %s]\n",
                 First, First + getNumDevices() - 1, Remedy);
  }

  std::vector<uint32_t> Machines;
  std::vector<bool> HasImage;
  int32_t NumWithImage = 0;
};

DiompPluginTy *RemotePlugin = nullptr;

bool localDevicesAreHidden() {
  static const bool Hidden = [] {
    const char *Text = std::getenv("DIOMP_LOCAL_DEVICES");
    return Text && std::strcmp(Text, "off") == 0;
  }();
  return Hidden;
}

/// Requirements of the library that is being registered.
int64_t Requirements = OMP_REQ_UNDEFINED;

/// Entries of LLVM 20 and older, which newer versions may read, too.
struct OlderEntry {
  void *Address;
  char *Name;
  uint64_t Size;
  int32_t Flags;
  int32_t Data;
};

/// LLVM 21 changed the format of entries: 8 bytes that are 0, the version of
/// the format and the kind of the entry (16 bits each), and flags. In the old
/// format this is an entry without an address whose name is such a number
/// instead of a pointer.
bool isOfLaterFormat(const __tgt_bin_desc &Desc) {
  struct {
    uint64_t Reserved;
    uint16_t Version;
    uint16_t Kind;
    uint32_t Flags;
  } First;
  static_assert(sizeof(First) <= sizeof(OlderEntry));
  std::memcpy(&First, static_cast<const void *>(Desc.HostEntriesBegin),
              sizeof(First));
  constexpr uint16_t MaxVersion = 15, MaxKind = 15;
  constexpr uint32_t MaxFlags = 0xfff;
  return First.Reserved == 0 && First.Version > 0 &&
         First.Version <= MaxVersion && First.Kind <= MaxKind &&
         First.Flags <= MaxFlags;
}

bool isEmpty(const __tgt_bin_desc &Desc) {
  return Desc.HostEntriesBegin == Desc.HostEntriesEnd;
}

int64_t requirementsOf(const __tgt_bin_desc &Desc) {
  int64_t Found = OMP_REQ_UNDEFINED;
  if (isEmpty(Desc))
    return Found;
  const void *Begin = Desc.HostEntriesBegin;
  const void *End = Desc.HostEntriesEnd;
  if (isOfLaterFormat(Desc)) {
    for (auto *Entry = static_cast<const diomp::OffloadEntry *>(Begin);
         Entry < End; ++Entry)
      if (diomp::isOfOpenMP(*Entry) &&
          diomp::flagsOf(*Entry) == OMP_REGISTER_REQUIRES)
        Found |= diomp::dataOf(*Entry);
    return Found;
  }
  for (auto *Entry = static_cast<const OlderEntry *>(Begin); Entry < End;
       ++Entry)
    if (Entry->Flags == OMP_REGISTER_REQUIRES)
      Found |= Entry->Data;
  return Found;
}

/// The compiler's entry in the image, such as "Debian clang version 22.1.8";
/// empty if it is not an ELF file or has no entry.
std::string compilerOf(StringRef Image) {
  auto File = object::ELF64LEObjectFile::create(MemoryBufferRef(Image, ""),
                                                /*InitContent=*/false);
  if (!File) {
    consumeError(File.takeError());
    return {};
  }
  for (const object::SectionRef &Section : File->sections()) {
    auto Name = Section.getName();
    auto Content = Section.getContents();
    if (!Name || !Content) {
      consumeError(Name.takeError());
      consumeError(Content.takeError());
      continue;
    }
    if (*Name != ".comment")
      continue;
    SmallVector<StringRef> Lines;
    Content->split(Lines, '\0', -1, /*KeepEmpty=*/false);
    for (StringRef Line : Lines)
      if (Line.contains("clang version"))
        return Line.str();
  }
  return {};
}

/// Ends the program, because the entries would be misread as addresses.
[[noreturn]] void refuseLaterFormat(const __tgt_bin_desc &Desc) {
  std::string Compiler;
  for (int32_t I = 0; I < Desc.NumDeviceImages && Compiler.empty(); ++I)
    Compiler =
        compilerOf(diomp::bytesOf(diomp::argumentOf(Desc.DeviceImages[I])));
  std::fprintf(stderr,
               "diomp: error: target regions of this program were compiled by "
               "%s, and DiOMP's libomptarget is that of LLVM %d [remedy: "
               "compile with diompcc or clang-%d; or, without DiOMP's device "
               "memory and remote devices, link with that compiler's own "
               "libomptarget and take DiOMP's folder lib/diomp out of "
               "LD_LIBRARY_PATH]\n",
               Compiler.empty() ? "LLVM 21 or newer" : Compiler.c_str(),
               diomp::LLVMVersion, diomp::LLVMVersion);
  std::_Exit(EXIT_FAILURE);
}

/// Whether a device exists, or will exist for an image of \p Desc.
bool findsDevice(PluginManager &Manager, const __tgt_bin_desc &Desc) {
  if (Manager.getNumDevices() > 0)
    return true;
  for (int32_t I = 0; I < Desc.NumDeviceImages; ++I) {
    const auto Image = diomp::argumentOf(Desc.DeviceImages[I]);
    for (GenericPluginTy &Plugin : Manager.plugins()) {
      if (!diomp::isPluginCompatible(Plugin, Image))
        continue;
      if (!Plugin.is_initialized())
        if (auto Err = Plugin.init()) {
          consumeError(std::move(Err));
          continue;
        }
      for (int32_t Id = 0; Id < Plugin.number_of_devices(); ++Id)
        if (diomp::isDeviceCompatible(Plugin, Id, Image))
          return true;
    }
  }
  return false;
}

} // namespace

extern "C" GenericPluginTy *createPlugin_diomp() {
  RemotePlugin = new DiompPluginTy();
  return RemotePlugin;
}

// NOLINTBEGIN(bugprone-reserved-identifier): the linker makes these names.
#define REAL(Name) __real__ZN##Name
#define WRAP(Name) __wrap__ZN##Name
// Names that are macros themselves.
#define REAL_OF(Macro) REAL(Macro)
#define WRAP_OF(Macro) WRAP(Macro)

extern "C" {
int32_t REAL_OF(DIOMP_IS_PLUGIN_COMPATIBLE)(GenericPluginTy *Plugin,
                                            diomp::ImageArgument Image);
int32_t REAL_OF(DIOMP_IS_DEVICE_COMPATIBLE)(GenericPluginTy *Plugin,
                                            int32_t DeviceId,
                                            diomp::ImageArgument Image);
void
    REAL(13PluginManager11registerLibEP14__tgt_bin_desc)(PluginManager *Manager,
                                                         __tgt_bin_desc *Desc);

int32_t WRAP_OF(DIOMP_IS_PLUGIN_COMPATIBLE)(GenericPluginTy *Plugin,
                                            diomp::ImageArgument Image) {
  if (Plugin != RemotePlugin)
    return !localDevicesAreHidden() &&
           REAL_OF(DIOMP_IS_PLUGIN_COMPATIBLE)(Plugin, Image);
  if (DiompPluginTy::machineOf(diomp::bytesOf(Image)) == ELF::EM_NONE ||
      !diomp::remoteTable())
    return false;
  if (Requirements & OMP_REQ_UNIFIED_SHARED_MEMORY) {
    static bool HasWarned = false;
    if (!std::exchange(HasWarned, true))
      std::fprintf(stderr, "diomp: warning: remote devices are not used: the "
                           "program requires unified_shared_memory\n");
    return false;
  }
  return true;
}

int32_t WRAP_OF(DIOMP_IS_DEVICE_COMPATIBLE)(GenericPluginTy *Plugin,
                                            int32_t DeviceId,
                                            diomp::ImageArgument Image) {
  if (Plugin == RemotePlugin)
    return RemotePlugin->accepts(DeviceId, diomp::bytesOf(Image));
  return REAL_OF(DIOMP_IS_DEVICE_COMPATIBLE)(Plugin, DeviceId, Image);
}
}

extern "C" void
WRAP(13PluginManager11registerLibEP14__tgt_bin_desc)(PluginManager *Manager,
                                                     __tgt_bin_desc *Desc) {
  if (!diomp::ReadsLaterEntries && !isEmpty(*Desc) && isOfLaterFormat(*Desc))
    refuseLaterFormat(*Desc);
  Requirements = Manager->getRequirements() | requirementsOf(*Desc);
  // Without any device, LLVM assumes that all of them share memory with the
  // host, and ends a program with requirements, although it could run on the
  // host.
  const bool IsForHost =
      (Requirements & ~OMP_REQ_NONE) && !findsDevice(*Manager, *Desc);
  if (!IsForHost)
    REAL(13PluginManager11registerLibEP14__tgt_bin_desc)(Manager, Desc);
  if (RemotePlugin && RemotePlugin->is_initialized())
    RemotePlugin->reportIdleDevices();
}
// NOLINTEND(bugprone-reserved-identifier)
