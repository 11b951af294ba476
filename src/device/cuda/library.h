// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The functions of CUDA's driver that this backend calls, loaded when a job requests devices. The
// few types and constants that they need are declared here after NVIDIA's documentation of the
// driver API, so building needs no CUDA; they are part of its stable binary interface.
//
// Some functions have changed since their first version; later versions have a suffix in the
// library, which cuda.h hides behind a macro. The names here are those of the library. All of them
// exist since CUDA 11.4 (driver 470).
#pragma once

#include "base/result.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace diomp::device::cuda {

using code = int;              ///< CUresult
using ordinal = int;           ///< CUdevice
using address = std::uint64_t; ///< CUdeviceptr
using handle = std::uint64_t;  ///< CUmemGenericAllocationHandle
using context_handle = void *; ///< CUcontext
using stream_handle = void *;  ///< CUstream
using module_handle = void *;  ///< CUmodule
using kernel_handle = void *;  ///< CUfunction

inline constexpr code success = 0;
inline constexpr code out_of_memory = 2;
inline constexpr code deinitialized = 4; ///< the process is exiting
inline constexpr code no_device = 100;
inline constexpr code not_ready = 600;
inline constexpr code peer_access_already_enabled = 704;
inline constexpr code not_supported = 801;

// Device attributes.
inline constexpr int multiprocessor_count = 16;
inline constexpr int virtual_memory_supported = 102;
inline constexpr int descriptor_handles_supported = 103;
inline constexpr int mps_enabled = 133;                        ///< unknown to older drivers
inline constexpr int rdma_with_virtual_memory_supported = 110; ///< GPUDirect RDMA with VMM

// Pointer attributes, and a memory type.
inline constexpr int pointer_memory_type = 2;
inline constexpr int pointer_device_ordinal = 9;
inline constexpr unsigned memory_type_device = 2;

inline constexpr int location_device = 1;
inline constexpr int allocation_pinned = 1;
inline constexpr int handle_none = 0;
inline constexpr int handle_descriptor = 1;
inline constexpr int access_read_write = 3;
inline constexpr int granularity_recommended = 1;
inline constexpr unsigned stream_non_blocking = 1; ///< does not synchronise with the default stream
inline constexpr unsigned host_alloc_portable = 1; ///< pinned for every context
inline constexpr unsigned host_register_portable = 1;
inline constexpr unsigned ipc_lazy_peer_access = 1;

struct location {
    int type = location_device;
    int id = 0;
};

/// CUmemAllocationProp.
struct allocation_properties {
    int type = allocation_pinned;
    int requested_handle_types = handle_none;
    location where;
    void *win32_metadata = nullptr;
    unsigned char compression = 0;
    unsigned char rdma_capable = 0; ///< gpuDirectRDMACapable
    unsigned short usage = 0;
    std::array<unsigned char, 4> reserved{};
};
static_assert(sizeof(allocation_properties) == 32 &&
              offsetof(allocation_properties, rdma_capable) == 25);

/// CUmemAccessDesc.
struct access_description {
    location who;
    int flags = access_read_write;
};
static_assert(sizeof(access_description) == 12);

/// CUipcMemHandle and CUuuid: passed by value and filled in.
struct ipc_handle {
    std::array<std::byte, 64> bytes{};
};
struct uuid {
    std::array<std::byte, 16> bytes{};
};

// each(our name, name in the library, parameters)
#define DIOMP_CUDA_FUNCTIONS(each)                                                                 \
    each(init, cuInit, (unsigned flags));                                                          \
    each(get_error_name, cuGetErrorName, (code what, const char **text));                          \
    each(get_error_string, cuGetErrorString, (code what, const char **text));                      \
    each(device_get_count, cuDeviceGetCount, (int *count));                                        \
    each(device_get_name, cuDeviceGetName, (char *text, int size, ordinal device));                \
    each(device_get_uuid, cuDeviceGetUuid_v2, (uuid * found, ordinal device));                     \
    each(device_total_mem, cuDeviceTotalMem_v2, (std::size_t *size_bytes, ordinal device));        \
    each(device_get_attribute, cuDeviceGetAttribute, (int *value, int which, ordinal device));     \
    each(device_get_pci_bus_id, cuDeviceGetPCIBusId, (char *text, int size, ordinal device));      \
    each(device_can_access_peer, cuDeviceCanAccessPeer, (int *can, ordinal device, ordinal peer)); \
    each(primary_context_retain, cuDevicePrimaryCtxRetain,                                         \
         (context_handle * into, ordinal device));                                                 \
    each(primary_context_release, cuDevicePrimaryCtxRelease_v2, (ordinal device));                 \
    each(context_push, cuCtxPushCurrent_v2, (context_handle context));                             \
    each(context_pop, cuCtxPopCurrent_v2, (context_handle * was));                                 \
    each(context_enable_peer_access, cuCtxEnablePeerAccess,                                        \
         (context_handle peer, unsigned flags));                                                   \
    each(mem_get_info, cuMemGetInfo_v2, (std::size_t *free_bytes, std::size_t *total_bytes));      \
    each(mem_alloc, cuMemAlloc_v2, (address * base, std::size_t size_bytes));                      \
    each(mem_free, cuMemFree_v2, (address base));                                                  \
    each(mem_host_alloc, cuMemHostAlloc, (void **base, std::size_t size_bytes, unsigned flags));   \
    each(mem_free_host, cuMemFreeHost, (void *base));                                              \
    each(mem_host_register, cuMemHostRegister_v2,                                                  \
         (void *base, std::size_t size_bytes, unsigned flags));                                    \
    each(mem_host_unregister, cuMemHostUnregister, (void *base));                                  \
    each(mem_granularity, cuMemGetAllocationGranularity,                                           \
         (std::size_t *size_bytes, const allocation_properties *of, int option));                  \
    each(mem_address_reserve, cuMemAddressReserve,                                                 \
         (address * base, std::size_t size_bytes, std::size_t alignment, address hint,             \
          unsigned long long flags));                                                              \
    each(mem_address_free, cuMemAddressFree, (address base, std::size_t size_bytes));              \
    each(mem_create, cuMemCreate,                                                                  \
         (handle * into, std::size_t size_bytes, const allocation_properties *of,                  \
          unsigned long long flags));                                                              \
    each(mem_release, cuMemRelease, (handle of));                                                  \
    each(mem_map, cuMemMap,                                                                        \
         (address base, std::size_t size_bytes, std::size_t offset, handle of,                     \
          unsigned long long flags));                                                              \
    each(mem_unmap, cuMemUnmap, (address base, std::size_t size_bytes));                           \
    each(mem_set_access, cuMemSetAccess,                                                           \
         (address base, std::size_t size_bytes, const access_description *of,                      \
          std::size_t num_descriptions));                                                          \
    each(mem_export, cuMemExportToShareableHandle,                                                 \
         (void *into, handle of, int handle_type, unsigned long long flags));                      \
    each(mem_import, cuMemImportFromShareableHandle,                                               \
         (handle * into, void *shared, int handle_type));                                          \
    each(ipc_get_mem_handle, cuIpcGetMemHandle, (ipc_handle * into, address base));                \
    each(ipc_open_mem_handle, cuIpcOpenMemHandle_v2,                                               \
         (address * base, ipc_handle of, unsigned flags));                                         \
    each(ipc_close_mem_handle, cuIpcCloseMemHandle, (address base));                               \
    each(pointer_get_attribute, cuPointerGetAttribute, (void *into, int which, address of));       \
    each(memcpy_async, cuMemcpyAsync,                                                              \
         (address dst, address src, std::size_t nbytes, stream_handle on));                        \
    each(stream_create, cuStreamCreate, (stream_handle * into, unsigned flags));                   \
    each(stream_destroy, cuStreamDestroy_v2, (stream_handle of));                                  \
    each(stream_query, cuStreamQuery, (stream_handle of));                                         \
    each(stream_synchronize, cuStreamSynchronize, (stream_handle of));                             \
    each(module_load_data, cuModuleLoadData, (module_handle * into, const void *image));           \
    each(module_unload, cuModuleUnload, (module_handle of));                                       \
    each(module_get_function, cuModuleGetFunction,                                                 \
         (kernel_handle * into, module_handle of, const char *name));                              \
    each(launch_kernel, cuLaunchKernel,                                                            \
         (kernel_handle of, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,   \
          unsigned block_y, unsigned block_z, unsigned shared_bytes, stream_handle on,             \
          void **parameters, void **extra))

struct library {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a declared name cannot stand in parentheses
#define DIOMP_CUDA_MEMBER(name, symbol, parameters) code(*name) parameters = nullptr
    DIOMP_CUDA_FUNCTIONS(DIOMP_CUDA_MEMBER);
#undef DIOMP_CUDA_MEMBER
};

/// Loads and initialises the driver, which stays loaded. `path` empty: libcuda.so.1.
result<std::shared_ptr<const library>> load_library(const std::string &path);

/// Returns the error "<what>: <the driver's message> (<its name for the code>)".
error cuda_error(const library &driver, const std::string &what, code failed);

/// Converts the outcome of a call to a status.
status check(const library &driver, code outcome, const char *what);

/// Logs the error of a call in a destructor, unless the driver has shut down first at the end of
/// the process.
void report(const library &driver, code outcome, const char *what) noexcept;

} // namespace diomp::device::cuda
