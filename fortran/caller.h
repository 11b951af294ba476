// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// DIOMP_STATS=callsites: the place of a call is the program's line, not the one in this library.
#pragma once

#include "api/fortran.h"

namespace diomp::fortran {

/// First in a procedure of the module: the thread's calls of the library count for `site` as long
/// as this lives.
class caller {
public:
    explicit caller(const void *site) { ompx_fortran_site = site; }
    ~caller() { ompx_fortran_site = nullptr; }
    caller(const caller &) = delete;
    caller &operator=(const caller &) = delete;
};

} // namespace diomp::fortran

/// Of a function that the program calls.
#define DIOMP_FORTRAN_CALLER __builtin_return_address(0)
/// Of a function that a procedure in Fortran calls for the program: one frame further up. Both are
/// compiled with frame pointers (CMakeLists.txt), so this is safe.
#define DIOMP_FORTRAN_OUTER_CALLER __builtin_return_address(1)
