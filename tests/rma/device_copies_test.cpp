// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rma/device_copies.h"
#include "support/remote_ranks.h"

#include <gtest/gtest.h>

namespace diomp::test {

TEST(device_copies, waits_until_the_devices_are_idle) {
    remote_ranks ranks(1);
    rma::device_copies copies(ranks[0].engine);
    int queries = 0;
    copies.set_idle_query([&]() -> result<bool> { return ++queries == 3; });
    EXPECT_TRUE(copies.wait().ok());
    EXPECT_EQ(queries, 0) << "the devices were polled before there were any copies";
    copies.enable();
    EXPECT_TRUE(copies.wait().ok());
    EXPECT_EQ(queries, 3);
}

TEST(device_copies, report_the_failure_of_a_copy) {
    remote_ranks ranks(1);
    rma::device_copies copies(ranks[0].engine);
    copies.set_idle_query([]() -> result<bool> { return error(OMPX_ERR_SYSTEM, "a copy failed"); });
    copies.enable();
    status const waited = copies.wait();
    ASSERT_FALSE(waited.ok());
    EXPECT_EQ(waited.failure().code(), OMPX_ERR_SYSTEM);
}

} // namespace diomp::test
