//===-- PlanGraph.cpp - Regions of plans as CUDA graphs ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// CUDA's driver launches a graph of kernels by one call. A stream of our own
// captures what LLVM's plugin launches for consecutive
// regions of a plan; launches of the plan then issue the graph in the plugin's
// queue.
//
// Updates remain operations of their own: the driver would have to know at the
// capture whether their host memory stays pinned. So do regions for which the
// plugin allocates memory in each launch, and regions that use its RPC server,
// which counts launches.
//
//===----------------------------------------------------------------------===//

#include "PlanGraph.h"

#include "Context.h"
#include "Plan.h"
#include "RecordedPlan.h"
#include "Region.h"
#include "Runtime.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <string>
#include <string_view>
#include <utility>

using namespace diomp;

namespace {

/// Functions of CUDA's driver, by their names in its binary interface.
struct GraphDriver {
  int (*StreamCreate)(void **Stream, unsigned Flags);
  int (*StreamDestroy)(void *Stream);
  int (*BeginCapture)(void *Stream, int Mode);
  int (*EndCapture)(void *Stream, void **Graph);
  int (*Instantiate)(void **Executable, void *Graph, unsigned long long Flags);
  int (*DestroyGraph)(void *Graph);
  int (*Launch)(void *Executable, void *Stream);
  int (*DestroyExecutable)(void *Executable);
};

template <typename T> bool find(T *&Function, const char *Name) {
  // LLVM's plugin loads the driver for all to see.
  Function = reinterpret_cast<T *>(dlsym(RTLD_DEFAULT, Name));
  return Function != nullptr;
}

/// Null: the driver is older than graphs.
const GraphDriver *driver() {
  static GraphDriver Functions;
  static const bool IsComplete =
      find(Functions.StreamCreate, "cuStreamCreate") &&
      find(Functions.StreamDestroy, "cuStreamDestroy_v2") &&
      find(Functions.BeginCapture, "cuStreamBeginCapture_v2") &&
      find(Functions.EndCapture, "cuStreamEndCapture") &&
      find(Functions.Instantiate, "cuGraphInstantiateWithFlags") &&
      find(Functions.DestroyGraph, "cuGraphDestroy") &&
      find(Functions.Launch, "cuGraphLaunch") &&
      find(Functions.DestroyExecutable, "cuGraphExecDestroy");
  return IsComplete ? &Functions : nullptr;
}

bool areWanted() {
  // The runtime reports other values as errors.
  const char *Text = std::getenv("DIOMP_PLAN_GRAPHS");
  return !Text || std::string_view(Text) != "off";
}

bool hasGraphs(const DeviceOfPlugin &On) {
  return areWanted() && std::string_view(nameOfPlugin(*On.Plugin)) == "cuda" &&
         !On.Plugin->getDevice(On.Id).getRPCServer() && driver();
}

/// A queue for AsyncInfo, if it has none.
bool createQueue(const DeviceOfPlugin &On, __tgt_async_info &AsyncInfo) {
  if (AsyncInfo.Queue)
    return true;
  __tgt_async_info *New = nullptr;
  if (On.Plugin->init_async_info(On.Id, &New) != OFFLOAD_SUCCESS)
    return false;
  AsyncInfo.Queue = New->Queue;
  delete New;
  return true;
}

bool issue(const DeviceOfPlugin &On, const RegionLaunch &Launch,
           __tgt_async_info &AsyncInfo) {
  KernelArgsTy KernelArgs = Launch.KernelArgs; // the plugin changes them
  return startKernel(*On.Plugin, On.Id, Launch.Entry,
                     const_cast<void **>(Launch.Args.data()),
                     const_cast<ptrdiff_t *>(Launch.Offsets.data()),
                     &KernelArgs, &AsyncInfo) == OFFLOAD_SUCCESS;
}

const RegionLaunch *
capturable(const decltype(Plan::Operations)::value_type &Of) {
  const auto *Launch = std::get_if<RegionLaunch>(&Of);
  return Launch && !Launch->Allocates ? Launch : nullptr;
}

} // namespace

std::shared_ptr<RegionGraph>
RegionGraph::capture(const DeviceOfPlugin &On,
                     const std::function<bool(__tgt_async_info &)> &Issue) {
  constexpr unsigned NonBlocking = 1; // CU_STREAM_NON_BLOCKING
  constexpr int Relaxed = 2;          // CU_STREAM_CAPTURE_MODE_RELAXED
  const GraphDriver &Driver = *driver();
  void *Stream = nullptr;
  if (!setContext(*On.Plugin, On.Id) ||
      Driver.StreamCreate(&Stream, NonBlocking) != 0)
    return nullptr;
  void *Graph = nullptr;
  void *Executable = nullptr;
  if (Driver.BeginCapture(Stream, Relaxed) == 0) {
    __tgt_async_info AsyncInfo;
    AsyncInfo.Queue = Stream;
    const bool Issued = Issue(AsyncInfo);
    if (Driver.EndCapture(Stream, &Graph) != 0)
      Graph = nullptr;
    if (Graph && Issued && Driver.Instantiate(&Executable, Graph, 0) != 0)
      Executable = nullptr;
    if (Graph)
      Driver.DestroyGraph(Graph);
  }
  Driver.StreamDestroy(Stream);
  return Executable ? std::make_shared<RegionGraph>(On, Executable) : nullptr;
}

RegionGraph::~RegionGraph() {
  // Without a manager the driver's context has ended.
  if (PM && setContext(*On.Plugin, On.Id))
    driver()->DestroyExecutable(Executable);
}

bool RegionGraph::launch(__tgt_async_info &AsyncInfo) {
  if (isRecording())
    noteGraph(On);
  if (!createQueue(On, AsyncInfo) ||
      !beginRegion(*On.Plugin, On.Id, &AsyncInfo) ||
      !setContext(*On.Plugin, On.Id))
    return false;
  std::lock_guard<std::mutex> Lock(Mutex);
  const int Code = driver()->Launch(Executable, AsyncInfo.Queue);
  if (Code != 0)
    diomp::report("CUDA's driver has not launched the graph of a plan: error " +
                  std::to_string(Code));
  return Code == 0;
}

void diomp::captureGraphs(Plan &Of) {
  if (!hasGraphs(Of.On))
    return;
  auto &Operations = Of.Operations;
  decltype(Plan::Operations) Combined;
  for (size_t Begin = 0; Begin < Operations.size();) {
    size_t End = Begin;
    while (End < Operations.size() && capturable(Operations[End]))
      ++End;
    std::shared_ptr<RegionGraph> Graph;
    if (End - Begin >= 2)
      Graph = RegionGraph::capture(Of.On, [&](__tgt_async_info &AsyncInfo) {
        for (size_t I = Begin; I < End; ++I)
          if (!issue(Of.On, *capturable(Operations[I]), AsyncInfo))
            return false;
        return true;
      });
    if (Graph) {
      Combined.emplace_back(std::move(Graph));
    } else {
      End = std::max(End, Begin + 1);
      for (size_t I = Begin; I < End; ++I)
        Combined.push_back(std::move(Operations[I]));
    }
    Begin = End;
  }
  Operations = std::move(Combined);
}
