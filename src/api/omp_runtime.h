// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The OpenMP runtime of the program, whichever it is (libomp, libgomp, none): found by name, so
// that this library needs none of them at link time.
#pragma once

#include "base/result.h"
#include "diomp.h"

#include <cstddef>
#include <cstdint>

namespace diomp::api {

/// What a handle of DiOMP's allocators stands for; OMPX_MEM_NONE if it is none of them. Handles are
/// an enumeration of pointer size in libomp and libgomp alike.
ompx_mem_kind_t kind_of_allocator(std::uintptr_t allocator);

/// OMPX_ERR_UNSUPPORTED if the program's OpenMP has no omp_fulfill_event.
status can_fulfill();
/// Calls it. Any thread.
void fulfill_event(std::uintptr_t event) noexcept;

/// The next definition of a symbol after ours, or nullptr.
void *next_symbol(const char *name) noexcept;

} // namespace diomp::api
