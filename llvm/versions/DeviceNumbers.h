//===-- DeviceNumbers.h - Plugins know the devices' numbers -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Read before LLVM's PluginManager.cpp (../overlay.cmake), which gives plugins
// OpenMP's numbers of their devices only where the build has OMPT.
//
// GenericDeviceTy has further members with OMPT, so that all classes are read
// without it, as in all other files of such a build. Only the code of this one
// file is compiled as with OMPT.
//
//===----------------------------------------------------------------------===//

#ifndef DIOMP_VERSIONS_DEVICENUMBERS_H
#define DIOMP_VERSIONS_DEVICENUMBERS_H

#ifdef OMPT_SUPPORT
#error "this build has OMPT: PluginManager.cpp needs no help"
#endif

#include "PluginInterface.h"
#include "PluginManager.h"
#include "device.h"

#define OMPT_SUPPORT

#endif
