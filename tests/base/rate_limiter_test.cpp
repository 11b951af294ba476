// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/rate_limiter.h"

#include <gtest/gtest.h>

#include <chrono>

namespace {

using diomp::rate_limiter;
using namespace std::chrono_literals;

TEST(rate_limiter, permits_so_many_per_interval_and_counts_the_others) {
    rate_limiter limiter(2, 60s);
    auto const begin = rate_limiter::clock::now();
    EXPECT_TRUE(limiter.permits(begin));
    EXPECT_TRUE(limiter.permits(begin + 1s));
    EXPECT_FALSE(limiter.permits(begin + 2s));
    EXPECT_FALSE(limiter.permits(begin + 59s));
    EXPECT_TRUE(limiter.permits(begin + 60s));
    EXPECT_EQ(limiter.take_suppressed(), 2);
    EXPECT_EQ(limiter.take_suppressed(), 0);
    EXPECT_TRUE(limiter.permits(begin + 61s));
    EXPECT_FALSE(limiter.permits(begin + 62s));
}

TEST(rate_limiter, the_interval_begins_with_the_first_report) {
    rate_limiter limiter(1, 60s);
    auto const begin = rate_limiter::clock::now() + 1h;
    EXPECT_TRUE(limiter.permits(begin));
    EXPECT_FALSE(limiter.permits(begin + 59s));
    EXPECT_TRUE(limiter.permits(begin + 60s));
}

} // namespace
