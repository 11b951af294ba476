//===-- PlanGraph.h - Regions of plans as CUDA graphs -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DIOMP_PLAN_GRAPH_H
#define DIOMP_PLAN_GRAPH_H

#include "PluginInterface.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

namespace diomp {

struct Plan;

/// A device of a plugin.
struct DeviceOfPlugin {
  llvm::omp::target::plugin::GenericPluginTy *Plugin;
  int32_t Id;
  bool operator==(const DeviceOfPlugin &Other) const {
    return Plugin == Other.Plugin && Id == Other.Id;
  }
};

/// Regions that the driver launches together. Thread-safe.
class RegionGraph {
public:
  /// \p Issue issues the regions in the queue that it is given; false if one
  /// failed. Null: the driver has captured nothing.
  static std::shared_ptr<RegionGraph>
  capture(const DeviceOfPlugin &On,
          const std::function<bool(__tgt_async_info &)> &Issue);

  RegionGraph(const DeviceOfPlugin &On, void *Executable)
      : On(On), Executable(Executable) {}
  RegionGraph(const RegionGraph &) = delete;
  RegionGraph &operator=(const RegionGraph &) = delete;
  /// Not while it is executed.
  ~RegionGraph();

  /// Issues the regions in AsyncInfo's queue, which it creates if necessary.
  bool launch(__tgt_async_info &AsyncInfo);

private:
  DeviceOfPlugin On;
  std::mutex Mutex; ///< the driver's graphs are not thread-safe
  void *Executable;
};

/// Replaces regions that follow each other by graphs, if the device has them.
void captureGraphs(Plan &Of);

} // namespace diomp

#endif
