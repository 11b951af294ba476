//===-- ImageFile.cpp - Images of host devices as libraries -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM's plugin for host devices writes each image into a file that mkstemp
// creates in /tmp, loads it as a library, and leaves it there. The linker's
// --wrap redirects that call to this file: the image is written to an anonymous
// memory file, which ends with the process.
//
// LLVM keeps a list of the libraries that it has loaded, and closes them when
// the list is destroyed at the program's end. It makes the list with the first
// library, which for host devices is the first image: after the program has
// registered the end of its images, and so the list would be destroyed before.
// Images would then be closed twice, and regions in the program's own handlers
// at its end would run code that is gone.
//
//===----------------------------------------------------------------------===//

#include "llvm/Support/DynamicLibrary.h"

#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MFD_EXEC // Linux 6.3
#define MFD_EXEC 0x0010U
#endif

// NOLINTBEGIN(bugprone-reserved-identifier): the linker makes these names.
extern "C" int __real_mkstemp(char *Template);

/// Whether the system allows executing code in this memory.
static bool isExecutable(int Memory) {
  constexpr size_t OnePage = 4096;
  if (ftruncate(Memory, OnePage) != 0)
    return false;
  void *Mapped =
      mmap(nullptr, OnePage, PROT_READ | PROT_EXEC, MAP_PRIVATE, Memory, 0);
  if (Mapped != MAP_FAILED)
    munmap(Mapped, OnePage);
  return ftruncate(Memory, 0) == 0 && Mapped != MAP_FAILED;
}

static int makeMemory() {
  int Memory = memfd_create("device image", MFD_CLOEXEC | MFD_EXEC);
  if (Memory < 0)
    Memory = memfd_create("device image", MFD_CLOEXEC);
  if (Memory >= 0 && !isExecutable(Memory)) {
    close(Memory);
    return -1;
  }
  return Memory;
}

/// Makes LLVM's list of libraries, before any program registers an image.
__attribute__((constructor)) static void makeListOfLibraries() {
  llvm::sys::DynamicLibrary::SearchForAddressOfSymbol("");
}

extern "C" int __wrap_mkstemp(char *Template) {
  constexpr std::string_view OfHostPlugin = "/tmp/tmpfile_";
  if (std::string_view(Template).substr(0, OfHostPlugin.size()) != OfHostPlugin)
    return __real_mkstemp(Template);
  // Stays open: the loader treats a reused name as the same library.
  const int Memory = makeMemory();
  if (Memory < 0)
    return __real_mkstemp(Template);
  // The process's number lets debuggers find the file, too, but the name must
  // not be longer than the template.
  char Name[64];
  const size_t Space = std::strlen(Template);
  int Length =
      std::snprintf(Name, sizeof(Name), "/proc/%d/fd/%d", getpid(), Memory);
  if (static_cast<size_t>(Length) > Space)
    Length = std::snprintf(Name, sizeof(Name), "/proc/self/fd/%d", Memory);
  const int Written = static_cast<size_t>(Length) > Space || access(Name, R_OK)
                          ? -1
                          : fcntl(Memory, F_DUPFD_CLOEXEC, 0);
  if (Written < 0) {
    close(Memory);
    return __real_mkstemp(Template);
  }
  std::strcpy(Template, Name);
  return Written;
}
// NOLINTEND(bugprone-reserved-identifier)
