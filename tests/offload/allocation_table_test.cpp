// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/internal/allocation_table.h"

#include <gtest/gtest.h>

using namespace diomp;
using offload::device_allocation;

namespace {

device_allocation mapped(std::uint64_t offset, std::size_t nbytes) {
    return {OMPX_MEM_LOCAL, true, offset, nbytes, nullptr, 0};
}

TEST(allocation_table, freed_blocks_are_reused_in_stack_order_only) {
    offload::allocation_table table;
    table.add(mapped(0, 64), 64);
    table.add(mapped(64, 128), 64);
    EXPECT_FALSE(table.cache_freed(*table.find(0))); // an allocation came after it
    ASSERT_TRUE(table.cache_freed(*table.find(64)));
    EXPECT_EQ(table.find(64), nullptr);
    EXPECT_EQ(table.count(), 1u);
    EXPECT_FALSE(table.reuse(mapped(0, 64), 64)); // another size
    EXPECT_EQ(table.reuse(mapped(0, 128), 64), 64u);
    ASSERT_TRUE(table.cache_freed(*table.find(64)));
    ASSERT_TRUE(table.cache_freed(*table.find(0)));
    EXPECT_EQ(table.pop_cached(), 0u);
    EXPECT_EQ(table.pop_cached(), 64u);
    EXPECT_FALSE(table.pop_cached());
}

TEST(allocation_table, no_rank_shares_an_allocation_that_is_being_released) {
    offload::allocation_table table;
    table.add({OMPX_MEM_ASYMMETRIC, false, 192, 64, nullptr, 7}, 64);
    EXPECT_EQ(table.offset_of_number(7), 192u);
    EXPECT_TRUE(table.share(192, world_rank{3}, false));
    auto const sharers = table.begin_release(192);
    ASSERT_TRUE(sharers);
    EXPECT_EQ(sharers->others, std::vector{world_rank{3}});
    EXPECT_FALSE(table.share(192, world_rank{2}, false));
    EXPECT_FALSE(table.use(192));
    table.erase(*table.find(192));
    EXPECT_FALSE(table.offset_of_number(7));
    EXPECT_FALSE(table.begin_release(192));
}

} // namespace
