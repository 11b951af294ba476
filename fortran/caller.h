// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// DIOMP_STATS=callsites: the call site is the program's line, not one in this library.
#pragma once

#include "diomp/binding.hpp"

namespace diomp::fortran {

/// Sets the call site of the thread's calls while this object lives. Construct first in each
/// procedure of the module.
class caller {
public:
    explicit caller(const void *site) { ompx_fortran_site = site; }
    ~caller() { ompx_fortran_site = nullptr; }
    caller(const caller &) = delete;
    caller &operator=(const caller &) = delete;
};

} // namespace diomp::fortran

/// Call site of a function that the program calls directly.
#define DIOMP_FORTRAN_CALLER __builtin_return_address(0)
/// Call site of a function that the program calls through a procedure in Fortran: one frame further
/// up. Both are compiled with frame pointers (CMakeLists.txt), so this is safe.
#define DIOMP_FORTRAN_OUTER_CALLER __builtin_return_address(1)
