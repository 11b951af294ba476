//===-- PinnedCopies.cpp - Private host memory from and to GPUs -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// CUDA's driver copies pageable memory with one thread through its own pinned
// memory, at a third of the bus or less. Here several threads copy chunks
// between the caller's memory and pinned ones, while the device copies others.
//
// The caller's thread alone talks to the plugin: chunks are copied by the
// device in the order of its queue, and an event says when one may be used
// again.
//
//===----------------------------------------------------------------------===//

#include "PinnedCopies.h"

#include "Runtime.h"

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <dlfcn.h>
#include <map>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <sched.h>
#include <string_view>
#include <utility>
#include <vector>

using namespace llvm::omp::target::plugin;

using diomp::Transfer;

namespace {

constexpr int64_t ChunkBytes = 1 << 20;
constexpr int64_t LeastBytes = 4 * ChunkBytes;
/// Programs that copy less than this in all do not pay for pinned memory.
constexpr int64_t LeastTotalBytes = 32 * ChunkBytes;
constexpr int MaxThreads = 64;

/// The processors of the process. OpenMP may bind the thread that copies first
/// to one of them, and its threads would inherit that.
const cpu_set_t Allowed = [] {
  cpu_set_t Set;
  CPU_ZERO(&Set);
  sched_getaffinity(0, sizeof(Set), &Set);
  return Set;
}();

/// Threads that copy, with the caller's own; fewer than two: the driver copies.
int numThreads() {
  static const int Chosen = [] {
    const char *Text = std::getenv("DIOMP_COPY_THREADS");
    const std::string_view Wanted = Text ? Text : "auto";
    int Number = std::min(4, CPU_COUNT(&Allowed) / 2);
    // The runtime reports other values as errors.
    std::from_chars(Wanted.data(), Wanted.data() + Wanted.size(), Number);
    return std::clamp(Number, 0, MaxThreads);
  }();
  return Chosen;
}

/// Whether CUDA's driver knows the address: then it is pinned, managed, or of a
/// device.
bool isKnownToDriver(const void *Address) {
  using PointerGetAttribute = int(void *Into, int Which, uint64_t Address);
  // LLVM's plugin loads the driver for all to see.
  static const auto Ask = reinterpret_cast<PointerGetAttribute *>(
      dlsym(RTLD_DEFAULT, "cuPointerGetAttribute"));
  constexpr int MemoryType = 2; // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
  unsigned Type = 0;
  return !Ask ||
         Ask(&Type, MemoryType, reinterpret_cast<uint64_t>(Address)) == 0;
}

struct Chunk {
  char *Pinned;
  void *Event;
  int64_t Begin; ///< of what it holds, in the transfer
  int64_t Size;
};

/// Copies of chunks by threads. Thread-safe.
class CopyThreads {
public:
  struct Job {
    Chunk *What;
    void *To;
    const void *From;
    std::deque<Chunk *> *Done; ///< guarded by this object
  };

  CopyThreads() {
    pthread_attr_t Attributes;
    pthread_attr_init(&Attributes);
    pthread_attr_setaffinity_np(&Attributes, sizeof(Allowed), &Allowed);
    sigset_t Every;
    sigset_t Before;
    sigfillset(&Every);
    pthread_sigmask(SIG_SETMASK, &Every, &Before);
    for (int I = 1; I < numThreads(); ++I) {
      pthread_t New;
      if (pthread_create(&New, &Attributes, run, this) != 0)
        break; // those that there are, or the caller alone
      pthread_setname_np(New, "diomp-copy");
      Threads.push_back(New);
    }
    pthread_sigmask(SIG_SETMASK, &Before, nullptr);
    pthread_attr_destroy(&Attributes);
  }
  CopyThreads(const CopyThreads &) = delete;
  CopyThreads &operator=(const CopyThreads &) = delete;
  ~CopyThreads() {
    {
      std::lock_guard<std::mutex> Lock(Mutex);
      IsEnding = true;
    }
    Added.notify_all();
    for (pthread_t Each : Threads)
      pthread_join(Each, nullptr);
  }

  void add(const Job &New) {
    {
      std::lock_guard<std::mutex> Lock(Mutex);
      Jobs.push_back(New);
    }
    Added.notify_one();
  }

  /// A chunk of Done; with MayWait copies one itself or waits for one, if there
  /// is none.
  Chunk *take(std::deque<Chunk *> &Done, bool MayWait) {
    std::unique_lock<std::mutex> Lock(Mutex);
    while (Done.empty() && MayWait) {
      if (!Jobs.empty())
        copyOne(Lock);
      else
        Finished.wait(Lock);
    }
    if (Done.empty())
      return nullptr;
    Chunk *const Taken = Done.front();
    Done.pop_front();
    return Taken;
  }

private:
  void copyOne(std::unique_lock<std::mutex> &Lock) {
    const Job Mine = Jobs.front();
    Jobs.pop_front();
    Lock.unlock();
    std::memcpy(Mine.To, Mine.From, static_cast<size_t>(Mine.What->Size));
    Lock.lock();
    Mine.Done->push_back(Mine.What);
    Finished.notify_all();
  }

  static void *run(void *Of) {
    auto &Self = *static_cast<CopyThreads *>(Of);
    std::unique_lock<std::mutex> Lock(Self.Mutex);
    while (true) {
      Self.Added.wait(Lock,
                      [&Self] { return Self.IsEnding || !Self.Jobs.empty(); });
      if (Self.IsEnding)
        return nullptr;
      Self.copyOne(Lock);
    }
  }

  std::mutex Mutex;
  std::condition_variable Added;
  std::condition_variable Finished;
  std::deque<Job> Jobs;
  bool IsEnding = false;
  std::vector<pthread_t> Threads;
};

/// The pinned chunks for a device. For one thread at a time.
class ChunkRing {
public:
  ChunkRing(GenericPluginTy &Plugin, int32_t DeviceId, CopyThreads &Threads)
      : Plugin(Plugin), DeviceId(DeviceId), Threads(Threads) {
    const auto Count = static_cast<size_t>(2 * numThreads() + 2);
    Memory = static_cast<char *>(
        Plugin.data_alloc(DeviceId, static_cast<int64_t>(Count) * ChunkBytes,
                          nullptr, TARGET_ALLOC_HOST));
    Chunks.resize(Memory ? Count : 0);
    for (size_t I = 0; I < Chunks.size(); ++I) {
      Chunks[I].Pinned = Memory + static_cast<int64_t>(I) * ChunkBytes;
      if (Plugin.create_event(DeviceId, &Chunks[I].Event) != OFFLOAD_SUCCESS) {
        Chunks.resize(I);
        break;
      }
      Free.push_back(&Chunks[I]);
    }
  }
  ChunkRing(const ChunkRing &) = delete;
  ChunkRing &operator=(const ChunkRing &) = delete;
  ~ChunkRing() {
    awaitAll();
    for (Chunk &Each : Chunks)
      Plugin.destroy_event(DeviceId, Each.Event);
    if (Memory)
      Plugin.data_delete(DeviceId, Memory, TARGET_ALLOC_HOST);
  }

  [[nodiscard]] bool isUsable() const { return Chunks.size() >= 2; }

  int32_t copy(const Transfer &What, __tgt_async_info *AsyncInfo) {
    const int32_t Outcome =
        What.ToDevice ? submit(What, AsyncInfo) : retrieve(What, AsyncInfo);
    // The last chunks of what was retrieved, and after a failure all.
    while (NumCopying > 0)
      Free.push_back(copied());
    return Outcome;
  }

private:
  void startCopy(Chunk *Of, void *To, const void *From) {
    ++NumCopying;
    Threads.add({Of, To, From, &Copied});
  }
  /// A chunk that a thread has copied. Waits for one; some must be with the
  /// threads.
  Chunk *copied() {
    --NumCopying;
    return Threads.take(Copied, true);
  }
  void freeCopied() {
    while (Chunk *const Each = Threads.take(Copied, false)) {
      --NumCopying;
      Free.push_back(Each);
    }
  }
  Chunk *nextChunk(const Transfer &Of, int64_t &Next) {
    Chunk *const New = Free.front();
    Free.pop_front();
    New->Begin = Next;
    New->Size = std::min(ChunkBytes, Of.Size - Next);
    Next += New->Size;
    return New;
  }
  /// Waits for the device's copy of the oldest chunk.
  Chunk *awaitOldest(int32_t &Outcome) {
    Chunk *const Oldest = InFlight.front();
    InFlight.pop_front();
    Outcome = Plugin.sync_event(DeviceId, Oldest->Event);
    return Oldest;
  }
  void awaitAll() {
    int32_t Ignored = OFFLOAD_SUCCESS;
    while (!InFlight.empty())
      Free.push_back(awaitOldest(Ignored));
  }
  /// The device's copy from or to a chunk.
  int32_t startOnDevice(const Transfer &Of, Chunk *Which,
                        __tgt_async_info *AsyncInfo) {
    int32_t Outcome = diomp::startTransfer(
        Plugin, DeviceId,
        {Of.ToDevice, Of.Device + Which->Begin, Which->Pinned, Which->Size},
        AsyncInfo);
    if (Outcome == OFFLOAD_SUCCESS)
      Outcome = Plugin.record_event(DeviceId, Which->Event, AsyncInfo);
    (Outcome == OFFLOAD_SUCCESS ? InFlight : Free).push_back(Which);
    return Outcome;
  }

  int32_t submit(const Transfer &What, __tgt_async_info *AsyncInfo) {
    int32_t Outcome = OFFLOAD_SUCCESS;
    int64_t Next = 0;
    int64_t Sent = 0;
    while (Sent < What.Size && Outcome == OFFLOAD_SUCCESS) {
      // The device has half of the chunks at most, the threads have the others.
      if (InFlight.size() > Chunks.size() / 2) {
        Free.push_back(awaitOldest(Outcome));
        continue;
      }
      while (Next < What.Size && !Free.empty()) {
        Chunk *const New = nextChunk(What, Next);
        startCopy(New, New->Pinned, What.Host + New->Begin);
      }
      Chunk *const Ready = copied();
      Sent += Ready->Size;
      Outcome = startOnDevice(What, Ready, AsyncInfo);
    }
    return Outcome;
  }

  int32_t retrieve(const Transfer &What, __tgt_async_info *AsyncInfo) {
    awaitAll(); // those in flight here are of this transfer
    int32_t Outcome = OFFLOAD_SUCCESS;
    int64_t Next = 0;
    while (Outcome == OFFLOAD_SUCCESS &&
           (Next < What.Size || !InFlight.empty())) {
      freeCopied();
      if (Next < What.Size && !Free.empty()) {
        Outcome = startOnDevice(What, nextChunk(What, Next), AsyncInfo);
      } else if (InFlight.empty()) {
        Free.push_back(copied());
      } else {
        Chunk *const Arrived = awaitOldest(Outcome);
        if (Outcome == OFFLOAD_SUCCESS)
          startCopy(Arrived, What.Host + Arrived->Begin, Arrived->Pinned);
        else
          Free.push_back(Arrived);
      }
    }
    awaitAll();
    return Outcome;
  }

  GenericPluginTy &Plugin;
  int32_t DeviceId;
  CopyThreads &Threads;
  char *Memory = nullptr;
  std::vector<Chunk> Chunks;
  std::deque<Chunk *> Free;
  std::deque<Chunk *> InFlight; ///< in the device's order
  std::deque<Chunk *> Copied;   ///< guarded by Threads
  int NumCopying = 0;
};

struct DeviceRing {
  std::mutex Mutex;
  std::unique_ptr<ChunkRing> Ring; ///< null before its first use
};

struct AllRings {
  std::mutex Mutex;
  int64_t TotalBytes = 0;
  std::unique_ptr<CopyThreads> Threads;
  std::map<std::pair<GenericPluginTy *, int32_t>, DeviceRing> Rings;
};

AllRings &all() {
  static AllRings *const Only = new AllRings; // programs copy while they end
  return *Only;
}

/// The device's ring, once the program has copied enough.
DeviceRing *findRing(GenericPluginTy &Plugin, int32_t DeviceId, int64_t Size) {
  AllRings &All = all();
  std::lock_guard<std::mutex> Lock(All.Mutex);
  All.TotalBytes += Size;
  if (All.TotalBytes < LeastTotalBytes)
    return nullptr;
  if (!All.Threads)
    All.Threads = std::make_unique<CopyThreads>();
  return &All.Rings[{&Plugin, DeviceId}];
}

} // namespace

std::optional<int32_t> diomp::copyThroughPinned(GenericPluginTy &Plugin,
                                                int32_t DeviceId,
                                                const Transfer &What,
                                                __tgt_async_info *AsyncInfo) {
  if (What.Size < LeastBytes || numThreads() < 2 || !AsyncInfo ||
      std::string_view(nameOfPlugin(Plugin)) != "cuda" ||
      isKnownToDriver(What.Host))
    return std::nullopt;
  DeviceRing *const Of = findRing(Plugin, DeviceId, What.Size);
  if (!Of)
    return std::nullopt;
  std::unique_lock<std::mutex> Lock(Of->Mutex, std::try_to_lock);
  if (!Lock)
    return std::nullopt;
  if (!Of->Ring)
    Of->Ring = std::make_unique<ChunkRing>(Plugin, DeviceId, *all().Threads);
  if (!Of->Ring->isUsable())
    return std::nullopt;
  return Of->Ring->copy(What, AsyncInfo);
}

void diomp::endPinnedCopies() {
  AllRings &All = all();
  std::lock_guard<std::mutex> Lock(All.Mutex);
  All.Rings.clear();
  All.Threads.reset();
}
