// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Side effects of the target regions in a device image.
#pragma once

#include <string_view>

namespace diomp::offload::remote {

/// Whether the regions of this ELF image change nothing but memory of their device: the image
/// imports only mathematical functions, OpenMP, and functions that move bytes. False if the image
/// cannot be parsed.
[[nodiscard]] bool only_changes_memory(std::string_view image);

} // namespace diomp::offload::remote
