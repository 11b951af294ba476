// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What LLVM's CUDA plugin asks of the driver beyond what the runtime does: enough to start a device
// and to move data. It wants all names that it knows to be there; those behind which there is
// nothing here say so when they are called.
#include "device/fake_cuda.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>

using namespace fake_cuda;

#define EXPORTED extern "C" __attribute__((visibility("default")))

// Other forms of what the runtime calls.
EXPORTED int cuMemHostAlloc(void **base, std::size_t size, unsigned flags);
EXPORTED int cuMemcpyAsync(device_address dst, device_address src, std::size_t size, void *on);

/// With FAKE_CUDA_SHOW_PAGEABLE, the largest copy of pageable memory is printed at the end.
static void note_host_side(const void *host, std::size_t size) {
    static bool const is_shown = [] {
        bool const wanted = std::getenv("FAKE_CUDA_SHOW_PAGEABLE") != nullptr;
        if (wanted) {
            std::atexit([] {
                std::printf("largest pageable copy: %zu\n", all().largest_pageable);
                std::fflush(stdout);
            });
        }
        return wanted;
    }();
    std::lock_guard const guard(all().mutex);
    if (is_shown && !is_pinned(host)) {
        all().largest_pageable = std::max(all().largest_pageable, size);
    }
}

EXPORTED int cuMemAllocHost_v2(void **base, std::size_t size) {
    return cuMemHostAlloc(base, size, 1);
}
EXPORTED int cuMemcpyHtoDAsync_v2(device_address dst, const void *src, std::size_t size, void *on) {
    note_host_side(src, size);
    return cuMemcpyAsync(dst, reinterpret_cast<device_address>(src), size, on);
}
EXPORTED int cuMemcpyDtoHAsync_v2(void *dst, device_address src, std::size_t size, void *on) {
    note_host_side(dst, size);
    return cuMemcpyAsync(reinterpret_cast<device_address>(dst), src, size, on);
}
EXPORTED int cuMemcpyDtoDAsync_v2(device_address dst, device_address src, std::size_t size,
                                  void *on) {
    return cuMemcpyAsync(dst, src, size, on);
}

// The addresses say which memory they are: the plugin passes each side's context for the other.
EXPORTED int cuMemcpyPeerAsync(device_address dst, void * /*one*/, device_address src,
                               void * /*other*/, std::size_t size, void *on) {
    return cuMemcpyAsync(dst, src, size, on);
}

EXPORTED int cuDriverGetVersion(int *version) {
    *version = 12040;
    return ok;
}

EXPORTED int cuDeviceGet(int *device, int number) {
    FAKE_CUDA_ENTER
    if (number < 0 || number >= static_cast<int>(all().devices.size())) {
        return invalid_device;
    }
    *device = number;
    return ok;
}

EXPORTED int cuDeviceGetUuid_v2(void *uuid, int device);
EXPORTED int cuDeviceGetUuid(void *uuid, int device) { return cuDeviceGetUuid_v2(uuid, device); }

EXPORTED int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
    FAKE_CUDA_ENTER
    *flags = 0;
    *active = all().devices[static_cast<std::size_t>(device)].retained > 0 ? 1 : 0;
    return ok;
}

EXPORTED int cuDevicePrimaryCtxSetFlags_v2(int /*device*/, unsigned flags) {
    FAKE_CUDA_ENTER
    // For cuda-plugin.sh.
    if (std::getenv("FAKE_CUDA_SHOW_FLAGS") != nullptr) {
        std::printf("context flags: %u\n", flags);
        std::fflush(stdout);
    }
    return ok;
}

EXPORTED int cuCtxGetDevice(int *device) {
    FAKE_CUDA_ENTER_CONTEXT
    *device = current;
    return ok;
}

EXPORTED int cuCtxGetLimit(std::size_t *value, int /*which*/) {
    FAKE_CUDA_ENTER_CONTEXT
    *value = 1024;
    return ok;
}

EXPORTED int cuCtxSetLimit(int /*which*/, std::size_t /*value*/) {
    FAKE_CUDA_ENTER_CONTEXT
    return ok;
}

// The plugin keeps events in stock.
EXPORTED int cuEventCreate(void **into, unsigned /*flags*/) {
    FAKE_CUDA_ENTER_CONTEXT
    *into = new event;
    return ok;
}
EXPORTED int cuEventDestroy(void *of) {
    FAKE_CUDA_ENTER_CONTEXT
    delete static_cast<event *>(of);
    return ok;
}
EXPORTED int cuEventRecord(void *of, void *on) {
    FAKE_CUDA_ENTER_CONTEXT
    auto *const recorded = static_cast<stream *>(on);
    if (!all().streams.contains(recorded)) {
        return complain(__func__, "no such stream", invalid_handle);
    }
    if (int const refused = refuse_captured(__func__, *recorded)) {
        return refused;
    }
    *static_cast<event *>(of) = {recorded, recorded->num_complete + recorded->pending.size()};
    return ok;
}
EXPORTED int cuEventSynchronize(void *of) {
    FAKE_CUDA_ENTER_CONTEXT
    event const awaited = *static_cast<event *>(of);
    // All that a stream had is complete once it is gone.
    while (all().streams.contains(awaited.of) && !carry_out(*awaited.of, guard, awaited.end)) {
        guard.unlock();
        std::this_thread::yield();
        guard.lock();
    }
    return ok;
}

EXPORTED int cuStreamWaitEvent(void *on, void *awaited, unsigned flags) {
    FAKE_CUDA_ENTER_CONTEXT
    auto *const waiting = static_cast<stream *>(on);
    if (!all().streams.contains(waiting) || flags != 0) {
        return complain(__func__, "stream or flags", invalid_handle);
    }
    if (event const until = *static_cast<event *>(awaited); until.of != waiting) {
        waiting->add({.until = until});
    }
    return ok;
}

#define FAKE_CUDA_HAS_NOT(name)                                                                    \
    EXPORTED int name() {                                                                          \
        FAKE_CUDA_ENTER                                                                            \
        return complain(__func__, "the stand-in does not do this", not_supported);                 \
    }
FAKE_CUDA_HAS_NOT(cuEventQuery)
FAKE_CUDA_HAS_NOT(cuFuncGetParamInfo)
FAKE_CUDA_HAS_NOT(cuFuncSetAttribute)
FAKE_CUDA_HAS_NOT(cuLaunchHostFunc)
FAKE_CUDA_HAS_NOT(cuMemsetD16Async)
FAKE_CUDA_HAS_NOT(cuMemsetD2D16Async)
FAKE_CUDA_HAS_NOT(cuMemsetD2D32Async)
FAKE_CUDA_HAS_NOT(cuMemsetD2D8Async)
FAKE_CUDA_HAS_NOT(cuMemsetD32Async)
FAKE_CUDA_HAS_NOT(cuMemsetD8Async)
FAKE_CUDA_HAS_NOT(cuOccupancyMaxPotentialBlockSize)
FAKE_CUDA_HAS_NOT(cuStreamAddCallback)
FAKE_CUDA_HAS_NOT(cuMemAllocAsync)
FAKE_CUDA_HAS_NOT(cuMemFreeAsync)
FAKE_CUDA_HAS_NOT(cuMemAllocManaged)
FAKE_CUDA_HAS_NOT(cuMemcpyDtoH_v2)
FAKE_CUDA_HAS_NOT(cuMemcpyHtoD_v2)
