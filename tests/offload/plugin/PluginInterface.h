// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What files of our plugin use of LLVM's header of this name, for tests of them alone. A device is
// a thread that carries out one queue of copies.
#pragma once

#include <cstdint>

enum { OFFLOAD_SUCCESS = 0, OFFLOAD_FAIL = ~0 };
enum TargetAllocTy : int32_t { TARGET_ALLOC_DEVICE = 0, TARGET_ALLOC_HOST = 1 };

struct __tgt_async_info { // NOLINT(bugprone-reserved-identifier): LLVM's name
    void *Queue = nullptr;
};

namespace llvm {

class Error {};
inline void consumeError(Error /*of*/) {}

namespace omp::target::plugin {

struct GenericDeviceTy;
struct GenericGlobalHandlerTy;

struct GenericPluginTy {
    void *data_alloc(int32_t device, int64_t nbytes, void *host, int32_t kind);
    int32_t data_delete(int32_t device, void *memory, int32_t kind);
    int32_t create_event(int32_t device, void **event);
    int32_t record_event(int32_t device, void *event, __tgt_async_info *on);
    int32_t sync_event(int32_t device, void *event);
    int32_t destroy_event(int32_t device, void *event);
};

} // namespace omp::target::plugin
} // namespace llvm
