// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the regions of a device image can do.
#pragma once

#include <string_view>

namespace diomp::offload::remote {

/// Whether regions of this ELF image change memory of their device and nothing else: all that the
/// image takes from outside is mathematics, OpenMP, and functions that move bytes. False for what
/// cannot be read.
[[nodiscard]] bool keeps_to_memory(std::string_view image);

} // namespace diomp::offload::remote
