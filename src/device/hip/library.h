// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The functions of HIP's runtime that this backend calls, loaded when a job requests devices. Types
// and constants follow AMD's documentation, so building needs no ROCm.
//
// HIP 6 changed the values of some enumerators, so older libraries are rejected by their version.
#pragma once

#include "base/result.h"

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace diomp::device::hip {

using code = int;             ///< hipError_t
using stream_handle = void *; ///< hipStream_t
using module_handle = void *; ///< hipModule_t
using kernel_handle = void *; ///< hipFunction_t

inline constexpr code success = 0;
inline constexpr code out_of_memory = 2;
inline constexpr code deinitialized = 4; ///< the process is exiting
inline constexpr code no_device = 100;
inline constexpr code not_ready = 600;
inline constexpr code peer_access_already_enabled = 704;
inline constexpr code not_supported = 801;

inline constexpr int min_version = 60000000;    ///< major * 10^7 + minor * 10^5 + patch
inline constexpr int multiprocessor_count = 63; ///< hipDeviceAttributeMultiprocessorCount
inline constexpr int copy_default = 4;          ///< direction derived from the addresses
inline constexpr int pointer_memory_type = 2;
inline constexpr int pointer_device_ordinal = 9;
inline constexpr unsigned memory_type_device = 2;
inline constexpr unsigned stream_non_blocking = 1; ///< does not synchronise with the default stream
inline constexpr unsigned host_alloc_portable = 1; ///< pinned for every device
inline constexpr unsigned host_register_portable = 1;
inline constexpr unsigned ipc_lazy_peer_access = 1;

/// hipIpcMemHandle_t, passed by value, and hipUUID.
struct ipc_handle {
    std::array<std::byte, 64> bytes{};
};
struct uuid {
    std::array<std::byte, 16> bytes{};
};

// each(our name, name in the library, parameters)
#define DIOMP_HIP_FUNCTIONS(each)                                                                  \
    each(runtime_get_version, hipRuntimeGetVersion, (int *version));                               \
    each(get_device_count, hipGetDeviceCount, (int *count));                                       \
    each(get_device, hipGetDevice, (int *device));                                                 \
    each(set_device, hipSetDevice, (int device));                                                  \
    each(device_get_name, hipDeviceGetName, (char *text, int size, int device));                   \
    each(device_get_uuid, hipDeviceGetUuid, (uuid * found, int device));                           \
    each(device_get_attribute, hipDeviceGetAttribute, (int *value, int which, int device));        \
    each(device_get_pci_bus_id, hipDeviceGetPCIBusId, (char *text, int size, int device));         \
    each(device_can_access_peer, hipDeviceCanAccessPeer, (int *can, int device, int peer));        \
    each(device_enable_peer_access, hipDeviceEnablePeerAccess, (int peer, unsigned flags));        \
    each(mem_get_info, hipMemGetInfo, (std::size_t *free_bytes, std::size_t *total_bytes));        \
    each(malloc, hipMalloc, (void **base, std::size_t size_bytes));                                \
    each(free, hipFree, (void *base));                                                             \
    each(host_malloc, hipHostMalloc, (void **base, std::size_t size_bytes, unsigned flags));       \
    each(host_free, hipHostFree, (void *base));                                                    \
    each(host_register, hipHostRegister, (void *base, std::size_t size_bytes, unsigned flags));    \
    each(host_unregister, hipHostUnregister, (void *base));                                        \
    each(ipc_get_mem_handle, hipIpcGetMemHandle, (ipc_handle * into, void *base));                 \
    each(ipc_open_mem_handle, hipIpcOpenMemHandle, (void **base, ipc_handle of, unsigned flags));  \
    each(ipc_close_mem_handle, hipIpcCloseMemHandle, (void *base));                                \
    each(pointer_get_attribute, hipPointerGetAttribute, (void *into, int which, void *of));        \
    each(memcpy_async, hipMemcpyAsync,                                                             \
         (void *dst, const void *src, std::size_t nbytes, int kind, stream_handle on));            \
    each(stream_create, hipStreamCreateWithFlags, (stream_handle * into, unsigned flags));         \
    each(stream_destroy, hipStreamDestroy, (stream_handle of));                                    \
    each(stream_query, hipStreamQuery, (stream_handle of));                                        \
    each(stream_synchronize, hipStreamSynchronize, (stream_handle of));                            \
    each(module_load_data, hipModuleLoadData, (module_handle * into, const void *image));          \
    each(module_unload, hipModuleUnload, (module_handle of));                                      \
    each(module_get_function, hipModuleGetFunction,                                                \
         (kernel_handle * into, module_handle of, const char *name));                              \
    each(launch_kernel, hipModuleLaunchKernel,                                                     \
         (kernel_handle of, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,   \
          unsigned block_y, unsigned block_z, unsigned shared_bytes, stream_handle on,             \
          void **parameters, void **extra))

using text_function = const char *(code what); ///< hipGetErrorName and hipGetErrorString

struct library {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a declared name cannot stand in parentheses
#define DIOMP_HIP_MEMBER(name, symbol, parameters) code(*name) parameters = nullptr
    DIOMP_HIP_FUNCTIONS(DIOMP_HIP_MEMBER);
#undef DIOMP_HIP_MEMBER
    text_function *get_error_name = nullptr;
    text_function *get_error_string = nullptr;
};

/// Loads the runtime, which stays loaded. `path` empty: libamdhip64.so.7, .6 or without a number.
result<std::shared_ptr<const library>> load_library(const std::string &path);

/// Returns the error "<what>: <HIP's message> (<its name for the code>)".
error hip_error(const library &runtime, const std::string &what, code failed);

/// Converts the outcome of a call to a status.
status check(const library &runtime, code outcome, const char *what);

/// Logs the error of a call in a destructor, unless HIP's runtime has shut down first at the end of
/// the process.
void report(const library &runtime, code outcome, const char *what) noexcept;

/// Makes a device current in the calling thread for a scope. HIP has one current device per thread,
/// and the destructor restores the program's choice.
class current_device {
public:
    static result<current_device> enter(const library &runtime, int device);
    ~current_device();
    current_device(current_device &&other) noexcept
        : runtime_(std::exchange(other.runtime_, nullptr)), before_(other.before_) {}
    current_device &operator=(current_device &&) = delete;

private:
    current_device(const library &runtime, int before) : runtime_(&runtime), before_(before) {}

    const library *runtime_;
    int before_; ///< -1: the device was current already
};

} // namespace diomp::device::hip
