// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "group/internal/call_queue.h"

#include <gtest/gtest.h>

#include <vector>

namespace diomp::group {
namespace {

TEST(call_queue, runs_calls_in_order_and_blocking_ones_after_them) {
    call_queue queue;
    std::vector<int> order; // plain: TSan looks
    for (int i = 0; i < 100; ++i) {
        queue.submit([&order, i] { order.push_back(i); });
    }
    {
        auto const call_lock = queue.lock_calls();
        EXPECT_EQ(order.size(), 100U);
        order.push_back(100);
    }
    queue.submit([&order] { order.push_back(101); });
    auto const call_lock = queue.lock_calls();
    ASSERT_EQ(order.size(), 102U);
    for (int i = 0; i < 102; ++i) {
        EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
    }
}

TEST(call_queue, finishes_what_is_queued_before_it_ends) {
    int done = 0;
    {
        call_queue queue;
        for (int i = 0; i < 10; ++i) {
            queue.submit([&done] { ++done; });
        }
    }
    EXPECT_EQ(done, 10);
}

} // namespace
} // namespace diomp::group
