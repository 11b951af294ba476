// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bytes as hexadecimal text, for launchers whose values are text.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace diomp {

[[nodiscard]] std::string to_hex(std::span<const std::byte> bytes);
/// Empty if the text is not hexadecimal.
[[nodiscard]] std::vector<std::byte> from_hex(const std::string &text);

} // namespace diomp
