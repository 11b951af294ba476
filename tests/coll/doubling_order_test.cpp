// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "coll/internal/doubling_order.h"

#include <gtest/gtest.h>

#include <bitset>
#include <utility>
#include <vector>

namespace diomp::coll {
namespace {

class doubling_sizes : public testing::TestWithParam<std::size_t> {};

// Simulates all nodes; a result is the set of the operands in it.
TEST_P(doubling_sizes, every_node_gets_each_operand_once) {
    std::size_t const num = GetParam();
    std::vector<std::bitset<64>> results(num);
    for (std::size_t node = 0; node < num; ++node) {
        results[node].set(node);
    }
    auto const combine = [](std::bitset<64> &own, const std::bitset<64> &with) {
        EXPECT_TRUE((own & with).none());
        own |= with;
    };
    std::vector<doubling_order> nodes;
    for (std::size_t node = 0; node < num; ++node) {
        nodes.emplace_back(num, node);
        doubling_order const &own = nodes.back();
        if (own.folds() && !own.is_folded()) {
            EXPECT_TRUE(doubling_order(num, own.fold_partner()).is_folded());
            combine(results[node], results[own.fold_partner()]);
        }
    }
    for (std::size_t round = 0; round < nodes.front().num_rounds(); ++round) {
        std::vector<std::bitset<64>> next = results;
        for (std::size_t node = 0; node < num; ++node) {
            if (!nodes[node].is_folded()) {
                std::size_t const partner = nodes[node].partner(round);
                ASSERT_LT(partner, num);
                EXPECT_FALSE(nodes[partner].is_folded());
                EXPECT_EQ(nodes[partner].partner(round), node);
                combine(next[node], results[partner]);
            }
        }
        results = std::move(next);
    }
    for (std::size_t node = 0; node < num; ++node) {
        EXPECT_EQ(results[node].count(), nodes[node].is_folded() ? 1U : num);
    }
}

INSTANTIATE_TEST_SUITE_P(nodes, doubling_sizes, testing::Values(2, 3, 4, 5, 6, 7, 8, 13, 16, 33));

} // namespace
} // namespace diomp::coll
