// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/hex.h"

namespace diomp {
namespace {

int digit_value(char digit) {
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

} // namespace

std::string to_hex(std::span<const std::byte> bytes) {
    constexpr char const *digits = "0123456789abcdef";
    std::string text;
    text.reserve(2 * bytes.size());
    for (std::byte const byte : bytes) {
        auto const value = std::to_integer<unsigned>(byte);
        text += digits[value >> 4];
        text += digits[value & 15];
    }
    return text;
}

std::vector<std::byte> from_hex(const std::string &text) {
    std::vector<std::byte> bytes;
    bytes.reserve(text.size() / 2);
    for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
        int const high = digit_value(text[i]);
        int const low = digit_value(text[i + 1]);
        if (high < 0 || low < 0) {
            return {};
        }
        bytes.push_back(static_cast<std::byte>(high * 16 + low));
    }
    return bytes;
}

} // namespace diomp
