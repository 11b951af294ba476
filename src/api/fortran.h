// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Between libdiomp and the library of the Fortran module (fortran/). Not for programs.
#pragma once

/// Reports an error as every function of diomp.h does. Returns `status`, which is one of
/// ompx_status, if the job is to go on; OMPX_ERR_STATE without a runtime. Any thread.
extern "C" __attribute__((visibility("default"))) int
ompx_fortran_misuse(const char *function, const char *arguments, int status, const char *what,
                    const char *remedy) noexcept;
