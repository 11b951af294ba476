// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Instructions of x86 processors that the system lets programs use.
#pragma once

#include <cstdint>

namespace diomp {

enum class cpu_feature : std::uint8_t { avx2, avx512f, avx512vl, fast_string_copy };

/// Any thread, also before constructors have run. False on other processors.
[[nodiscard]] bool has_cpu_feature(cpu_feature which);

} // namespace diomp
