// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The release of this library.
#pragma once

namespace diomp {

/// "1.0.0", of diomp.h. Ranks of one job must have equal ones (docs/abi.md).
[[nodiscard]] const char *library_version();

} // namespace diomp
