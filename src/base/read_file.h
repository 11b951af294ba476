// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Files as strings. Not by streams: std::istreambuf_iterator throws where a read fails, as that of
// a directory or of another user's file in /proc does.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <string>

namespace diomp {

/// Longer files are refused: /dev/zero would have no end.
inline constexpr std::size_t max_file_bytes = std::size_t{256} << 20;

/// The whole content of a file; OMPX_ERR_SYSTEM, with the path and the reason, if it cannot be
/// opened or read. Blocks as read() does. Any thread.
result<std::string> read_file(const std::string &path, std::size_t max_bytes = max_file_bytes);

} // namespace diomp
