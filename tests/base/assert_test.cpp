// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Invariants are checked in builds with DIOMP_ASSERTS, and cost nothing in others.
#include "base/assert.h"
#include "transport/common/pending_gets.h"
#include "transport/types.h"

#include <gtest/gtest.h>

#include <cstddef>

namespace diomp {
namespace {

TEST(asserts, evaluate_their_condition_only_where_they_are_enabled) {
    int num_evaluated = 0;
    DIOMP_ASSERT(++num_evaluated == 1, "it is evaluated once");
    EXPECT_EQ(num_evaluated, has_asserts ? 1 : 0);
}

TEST(asserts, name_the_condition_and_the_place) {
    if (!has_asserts) {
        GTEST_SKIP() << "built without DIOMP_ASSERTS";
    }
    int const balance = -1;
    EXPECT_DEATH(DIOMP_ASSERT(balance >= 0, "there is no debt"),
                 "internal error at .*assert_test.cpp:[0-9]+: not true: balance >= 0; there is no "
                 "debt");
}

TEST(asserts, find_a_transfer_that_ends_twice) {
    if (!has_asserts) {
        GTEST_SKIP() << "built without DIOMP_ASSERTS";
    }
    transport::completion done;
    done.begin();
    done.end();
    EXPECT_DEATH(done.end(), "a transfer ends once, after its begin");

    transport::pending_gets gets;
    std::byte into[8];
    auto const id = gets.begin(into, sizeof(into), done);
    done.begin();
    gets.finish(id);
    EXPECT_DEATH(gets.finish(id), "a get ends once");
}

} // namespace
} // namespace diomp
