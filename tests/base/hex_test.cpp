// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/hex.h"

#include <gtest/gtest.h>

namespace diomp {
namespace {

TEST(hex, all_bytes_come_back) {
    std::vector<std::byte> bytes;
    for (int i = 0; i < 256; ++i) {
        bytes.push_back(static_cast<std::byte>(i));
    }
    std::string const text = to_hex(bytes);
    EXPECT_EQ(text.substr(0, 6), "000102");
    EXPECT_EQ(text.size(), 512U);
    EXPECT_EQ(from_hex(text), bytes);
    EXPECT_EQ(to_hex({}), "");
}

TEST(hex, other_text_is_no_bytes) {
    EXPECT_TRUE(from_hex("0g").empty());
    EXPECT_TRUE(from_hex("0A").empty());
    EXPECT_TRUE(from_hex("").empty());
}

} // namespace
} // namespace diomp
