// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Messages that GASNet-EX delivers in any order reach their handlers in the order of their sending.
// Needs no GASNet-EX.
#include "transport/gasnet/message_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

namespace {

using diomp::transport::handler_id;

TEST(gasnet_message_order, is_restored_from_any_order_of_arrival) {
    std::mt19937 numbers(7);
    for (int round = 0; round < 50; ++round) {
        std::vector<std::uint32_t> arriving(40);
        std::iota(arriving.begin(), arriving.end(), 0U);
        std::ranges::shuffle(arriving, numbers);
        diomp::transport::gasnet::message_order order;
        std::vector<std::uint32_t> delivered;
        for (std::uint32_t const number : arriving) {
            order.deliver_in_order(
                number, static_cast<handler_id>(number % 3), &number, sizeof(number),
                [&](handler_id handler, const std::byte *payload, std::size_t nbytes) {
                    std::uint32_t sent = 0;
                    ASSERT_EQ(nbytes, sizeof(sent));
                    std::memcpy(&sent, payload, nbytes);
                    EXPECT_EQ(handler, sent % 3);
                    delivered.push_back(sent);
                });
        }
        EXPECT_EQ(delivered.size(), arriving.size());
        EXPECT_TRUE(std::ranges::is_sorted(delivered));
    }
}

} // namespace
