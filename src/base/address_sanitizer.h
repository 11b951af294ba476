// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whether the program or this library is compiled for AddressSanitizer.
#pragma once

#include "base/sanitizer.h"

#include <cstddef>

#if !DIOMP_ADDRESS_SANITIZER
// NOLINTNEXTLINE(readability-identifier-naming): the name is theirs
extern "C" void *__asan_region_is_poisoned(void *begin, std::size_t nbytes) __attribute__((weak));
#endif

namespace diomp {

#if DIOMP_ADDRESS_SANITIZER
constexpr bool has_address_sanitizer() { return true; }
#else
inline bool has_address_sanitizer() { return &__asan_region_is_poisoned != nullptr; }
#endif

} // namespace diomp
