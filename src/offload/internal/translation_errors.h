// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace diomp::offload {

/// The error of a transfer of `nbytes` to or from `what`, which has `left` bytes from there on.
[[nodiscard]] error past_end_error(const std::string &what, std::uint64_t left, std::size_t nbytes);

/// The error for memory of a service's GPU outside of its segment, whose addresses may also be
/// those of this process's memory.
[[nodiscard]] error outside_segment_error(const void *pointer, int device);

} // namespace diomp::offload
