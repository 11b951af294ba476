//===-- Versions.cpp - One libomptarget per process -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A library that another version of LLVM compiled needs another libomptarget,
// which has another name. If two are loaded, all calls go to the first one,
// which may misread their arguments, and the devices of the second one are not
// used.
//
//===----------------------------------------------------------------------===//

#include "Offload.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <string_view>

/// Named on the linker's command line; no other reference pulls this file out
/// of its archive.
extern "C" __attribute__((constructor)) void diompCheckVersions() {
  // A session of a device service: an image needs the library of its compiler's
  // version, and calls none of its functions that a region cannot call.
  if (dlsym(RTLD_DEFAULT, "diomp_take_plugins"))
    return;
  Dl_info First{}, Own{};
  // Not found: this library is loaded for one other library only.
  void *Used = dlsym(RTLD_DEFAULT, "__tgt_register_lib");
  if (!Used || !dladdr(Used, &First) ||
      !dladdr(reinterpret_cast<void *>(&diompCheckVersions), &Own) ||
      First.dli_fbase == Own.dli_fbase ||
      std::string_view(First.dli_fname).find("libomptarget.so") ==
          std::string_view::npos)
    return;
  std::fprintf(stderr,
               "diomp: error: two versions of libomptarget are loaded: %s and "
               "%s (LLVM %d) [remedy: compile the program and all libraries "
               "that have target regions with one version of LLVM; LD_DEBUG="
               "files shows which file needs which]\n",
               First.dli_fname, Own.dli_fname, diomp::LLVMVersion);
  std::_Exit(EXIT_FAILURE);
}
