// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where the static data of the program is.
#pragma once

#include "library.h"

#include <vector>

namespace diomp_shmem {

/// The writable ranges of the executable (.data and .bss); equal sizes on all PEs of one program.
std::vector<static_range> find_static_data();

} // namespace diomp_shmem
