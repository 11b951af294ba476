// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Interface between libdiomp and its bindings for Fortran (fortran/) and Python (python/). Not for
// programs. The names are those of the first binding.
#ifndef DIOMP_BINDING_HPP
#define DIOMP_BINDING_HPP

#include <cstddef>
#include <cstdint>

struct ompx_event;

extern "C" {

/// Reports an error in the way of diomp.h's functions: ends the job, or with DIOMP_ERRORS=return
/// returns `status`, an ompx_status. OMPX_ERR_STATE without a runtime. Any thread.
__attribute__((visibility("default"))) int ompx_fortran_misuse(const char *function,
                                                               const char *arguments, int status,
                                                               const char *what,
                                                               const char *remedy) noexcept;

/// Two sections of one shape: pointers to their first elements, number of elements per dimension
/// and strides in bytes (of any sign), fastest dimension first.
struct ompx_fortran_sections {
    void *dst;
    const void *src;
    std::size_t element_bytes;
    int num_dims;
    const std::size_t *counts;
    const std::ptrdiff_t *dst_strides;
    const std::ptrdiff_t *src_strides;
};
/// ompx_put and ompx_get for sections; `function` is a string literal for messages and statistics.
/// Put returns when the source may be reused, get when dst holds the data. Any thread.
__attribute__((visibility("default"))) int
ompx_fortran_put(const char *function, int rank, const ompx_fortran_sections *given) noexcept;
__attribute__((visibility("default"))) int
ompx_fortran_get(const char *function, int rank, const ompx_fortran_sections *given) noexcept;
/// ompx_put_signal and ompx_put_signal_nb for sections. `op` is an ompx_signal_op_t.
__attribute__((visibility("default"))) int
ompx_fortran_put_signal(const char *function, int rank, const ompx_fortran_sections *given,
                        std::uint64_t *signal, std::uint64_t value, int op) noexcept;
__attribute__((visibility("default"))) int
ompx_fortran_put_signal_nb(const char *function, int rank, const ompx_fortran_sections *given,
                           std::uint64_t *signal, std::uint64_t value, int op,
                           ompx_event **event) noexcept;

/// ompx_target_put and ompx_target_get for sections, with the devices of both sides.
__attribute__((visibility("default"))) int
ompx_fortran_target_put(const char *function, int rank, const ompx_fortran_sections *given,
                        int dst_device, int src_device) noexcept;
__attribute__((visibility("default"))) int
ompx_fortran_target_get(const char *function, int rank, const ompx_fortran_sections *given,
                        int dst_device, int src_device) noexcept;

/// Where the memory of an own device is: `vendor` 0 (host memory, which the processor loads), 1
/// (CUDA) or 2 (HIP), and the vendor's number of the device in this process. Starts the device.
struct ompx_device_memory {
    int vendor;
    int number;
};
__attribute__((visibility("default"))) int
ompx_device_memory_of(int device, ompx_device_memory *found) noexcept;
/// OpenMP's number of the own device whose segment contains an address; -1: none. Does not block.
__attribute__((visibility("default"))) int ompx_device_of_address(const void *address) noexcept;

/// Call site in the program while the calling thread is in a procedure of the module, otherwise
/// null (DIOMP_STATS=callsites).
__attribute__((visibility("default"))) extern constinit thread_local const void *ompx_fortran_site;
}

#endif // DIOMP_BINDING_HPP
