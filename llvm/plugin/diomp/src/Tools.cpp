//===-- Tools.cpp - OMPT reaches the OpenMP runtime in use ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// libomptarget asks libomp for the callbacks of a tool (OMPT). LLVM opens the
// file libomp.so for that. Distributions have this name in a package for
// development only, in a folder that the loader does not search, and another
// file of that name would be a second OpenMP runtime. The linker's --wrap
// redirects the call to this file, which names the libomp that this library is
// linked with.
//
//===----------------------------------------------------------------------===//

#include "llvm/Support/DynamicLibrary.h"

#include <dlfcn.h>
#include <string>
#include <string_view>

/// Undefined in a libomp without OMPT.
extern "C" [[gnu::weak]] void ompt_libomp_connect(void *Result);

using llvm::sys::DynamicLibrary;

// The linker makes these names of DynamicLibrary::getPermanentLibrary.
#define GET_PERMANENT_LIBRARY                                                  \
  "_ZN4llvm3sys14DynamicLibrary19getPermanentLibraryEPKcPNSt7__cxx1112basic_"  \
  "stringIcSt11char_traitsIcESaIcEEE"
DynamicLibrary realGetPermanentLibrary(
    const char *Name,
    std::string *Error) __asm__("__real_" GET_PERMANENT_LIBRARY);
DynamicLibrary wrapGetPermanentLibrary(
    const char *Name,
    std::string *Error) __asm__("__wrap_" GET_PERMANENT_LIBRARY);

DynamicLibrary wrapGetPermanentLibrary(const char *Name, std::string *Error) {
  Dl_info Runtime{};
  if (Name && std::string_view(Name) == "libomp.so" && ompt_libomp_connect &&
      dladdr(reinterpret_cast<void *>(&ompt_libomp_connect), &Runtime) != 0)
    Name = Runtime.dli_fname;
  return realGetPermanentLibrary(Name, Error);
}
