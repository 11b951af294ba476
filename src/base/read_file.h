// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Files as strings. Does not use streams: std::istreambuf_iterator throws if a read fails, as for a
// directory or another user's file in /proc.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <string>

namespace diomp {

/// Longer files are an error: /dev/zero is infinite.
inline constexpr std::size_t max_file_bytes = std::size_t{256} << 20;

/// The whole content of a file; OMPX_ERR_SYSTEM, with the path and the reason, if it cannot be
/// opened or read. Blocks like read(). Any thread.
result<std::string> read_file(const std::string &path, std::size_t max_bytes = max_file_bytes);

} // namespace diomp
