// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "core/value_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace diomp::run {
namespace {

TEST(value_store, values_are_visible_after_the_fence_and_not_before) {
    value_store store;
    store.stage({{3, "k", "v"}});
    EXPECT_EQ(store.find(3, "k"), nullptr);
    EXPECT_FALSE(store.commit());
    ASSERT_NE(store.find(3, "k"), nullptr);
    EXPECT_EQ(*store.find(3, "k"), "v");
    EXPECT_EQ(store.find(2, "k"), nullptr);
    EXPECT_EQ(store.find(3, "l"), nullptr);
}

TEST(value_store, tells_when_a_value_is_replaced_by_another) {
    value_store store;
    store.stage({{0, "k", "v"}});
    EXPECT_FALSE(store.commit());
    store.stage({{0, "k", "v"}, {1, "k", "w"}});
    EXPECT_FALSE(store.commit()); // the same, and a new one
    store.stage({{0, "k", "other"}});
    EXPECT_TRUE(store.commit());
    EXPECT_EQ(*store.find(0, "k"), "other");
    EXPECT_FALSE(store.commit());
}

} // namespace
} // namespace diomp::run
