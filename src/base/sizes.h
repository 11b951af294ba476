// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sizes in bytes as text.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <string>

namespace diomp {

/// "4096", "64K", "16M", "2G", "1T" (powers of 1024, optional "iB" or "B"). Overflow is an error.
result<std::size_t> parse_size(const std::string &text);
/// "64 KiB", "1.5 GiB": for messages.
std::string format_size(std::size_t size_bytes);

} // namespace diomp
