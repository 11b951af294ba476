// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/service/allocations.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace diomp::offload::service {
namespace {

class allocations_test : public testing::Test {
protected:
    std::vector<std::uint64_t> freed_;
    allocations table_{[this](std::uint64_t address) { freed_.push_back(address); }};
};

TEST_F(allocations_test, ranges_inside_are_held_and_no_others) {
    table_.add(0x1000, 100);
    table_.add(0x2000, 1);
    for (auto const &[address, nbytes] : std::vector<std::pair<std::uint64_t, std::size_t>>{
             {0x1000, 100}, {0x1000, 1}, {0x1063, 1}, {0x1020, 50}, {0x2000, 1}}) {
        EXPECT_NE(table_.retain(address, nbytes), nullptr) << std::hex << address;
    }
    for (auto const &[address, nbytes] :
         std::vector<std::pair<std::uint64_t, std::size_t>>{{0xfff, 1},
                                                            {0x1000, 101},
                                                            {0x1064, 1},
                                                            {0x1063, 2},
                                                            {0x1001, ~std::size_t{0}},
                                                            {0x2001, 1},
                                                            {0, 1},
                                                            {~std::uint64_t{0}, 2}}) {
        EXPECT_EQ(table_.retain(address, nbytes), nullptr) << std::hex << address;
    }
}

TEST_F(allocations_test, memory_is_freed_when_nobody_holds_it) {
    table_.add(0x1000, 100);
    auto first = table_.retain(0x1000, 10);
    auto second = table_.retain(0x1050, 10);
    EXPECT_TRUE(table_.release(0x1000));
    EXPECT_EQ(table_.retain(0x1000, 10), nullptr);
    EXPECT_FALSE(table_.release(0x1000));
    first.reset();
    EXPECT_TRUE(freed_.empty());
    second.reset();
    EXPECT_EQ(freed_, std::vector<std::uint64_t>{0x1000});
}

TEST_F(allocations_test, memory_that_nobody_holds_is_freed_at_once) {
    table_.add(0x1000, 100);
    table_.retain(0x1000, 100).reset();
    EXPECT_TRUE(freed_.empty());
    EXPECT_FALSE(table_.release(0x1001));
    EXPECT_TRUE(table_.release(0x1000));
    EXPECT_EQ(freed_, std::vector<std::uint64_t>{0x1000});
}

} // namespace
} // namespace diomp::offload::service
