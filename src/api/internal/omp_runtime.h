// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The OpenMP runtime of the program (libomp, libgomp or none): its functions are looked up by name,
// so that this library does not link to it.
#pragma once

#include "base/result.h"
#include "diomp/types.h"

#include <cstddef>
#include <cstdint>

namespace diomp::api {

/// The memory kind of a handle of DiOMP's allocators; OMPX_MEM_NONE for other handles. Handles are
/// an enumeration of pointer size in both libomp and libgomp.
ompx_mem_kind_t kind_of_allocator(std::uintptr_t allocator);

/// Errors: OMPX_ERR_UNSUPPORTED if the program's OpenMP has no omp_fulfill_event.
status can_fulfill();
/// Calls omp_fulfill_event, which can_fulfill() has found. Any thread.
void fulfill_event(std::uintptr_t event) noexcept;

/// The next definition of a symbol after this library's, or nullptr.
void *next_symbol(const char *name) noexcept;

} // namespace diomp::api
