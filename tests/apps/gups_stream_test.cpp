// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The random sequence of the app gups.
#include "gups/stream.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace {

TEST(gups_stream, begins_anywhere) {
    std::uint64_t word = 1;
    for (std::uint64_t index = 0; index < 1000; ++index) {
        ASSERT_EQ(stream_word(index), word) << index;
        word = stream_next(word);
    }
}

TEST(gups_stream, has_the_period_of_hpcc) {
    constexpr std::uint64_t period = 1317624576693539401;
    EXPECT_EQ(stream_word(period), 1U);
    EXPECT_EQ(stream_word(period + 70), stream_word(70));
    EXPECT_NE(stream_word(period / 7), 1U);
}

} // namespace
