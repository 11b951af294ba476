// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Between libdiomp and the library of the Fortran module (fortran/). Not for programs.
#pragma once

#include <cstddef>

extern "C" {

/// Reports an error as every function of diomp.h does. Returns `status`, which is one of
/// ompx_status, if the job is to go on; OMPX_ERR_STATE without a runtime. Any thread.
__attribute__((visibility("default"))) int ompx_fortran_misuse(const char *function,
                                                               const char *arguments, int status,
                                                               const char *what,
                                                               const char *remedy) noexcept;

/// Sections of one shape, pointers to their first elements; the fastest dimension first, strides in
/// bytes and of any sign.
struct ompx_fortran_sections {
    void *dst;
    const void *src;
    std::size_t element_bytes;
    int num_dims;
    const std::size_t *counts;
    const std::ptrdiff_t *dst_strides;
    const std::ptrdiff_t *src_strides;
};
/// As ompx_put and ompx_get on memory in one piece; `function` is a string literal, for messages
/// and statistics.
__attribute__((visibility("default"))) int
ompx_fortran_put(const char *function, int rank, const ompx_fortran_sections *given) noexcept;
__attribute__((visibility("default"))) int
ompx_fortran_get(const char *function, int rank, const ompx_fortran_sections *given) noexcept;

/// The program's place that the calling thread's calls come from, while it is in a procedure of the
/// module (DIOMP_STATS=callsites); else null.
__attribute__((visibility("default"))) extern constinit thread_local const void *ompx_fortran_site;
}
