// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Extents, positions and the arrangement by nodes, without ranks.
#include "cart/cart_grid.h"
#include "cart/dims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

namespace diomp::cart {
namespace {

using testing::ElementsAre;

TEST(dims, factors_are_as_close_as_possible) {
    EXPECT_THAT(balanced_factors(1, 3), ElementsAre(1, 1, 1));
    EXPECT_THAT(balanced_factors(6, 2), ElementsAre(3, 2)); // MPI 4.0, example 8.1
    EXPECT_THAT(balanced_factors(7, 2), ElementsAre(7, 1));
    EXPECT_THAT(balanced_factors(12, 2), ElementsAre(4, 3));
    EXPECT_THAT(balanced_factors(16, 3), ElementsAre(4, 2, 2));
    EXPECT_THAT(balanced_factors(24, 3), ElementsAre(4, 3, 2));
    EXPECT_THAT(balanced_factors(36, 3), ElementsAre(4, 3, 3));
    EXPECT_THAT(balanced_factors(64, 3), ElementsAre(4, 4, 4));
    EXPECT_THAT(balanced_factors(1000000, 3), ElementsAre(100, 100, 100));
    EXPECT_THAT(balanced_factors(720720, 4), ElementsAre(33, 30, 28, 26));
    EXPECT_THAT(balanced_factors(2147483647, 2), ElementsAre(2147483647, 1)) << "a prime";
}

TEST(dims, every_number_is_the_product_in_descending_order) {
    for (int n = 1; n <= 300; ++n) {
        for (std::size_t count = 1; count <= 4; ++count) {
            auto const factors = balanced_factors(n, count);
            ASSERT_EQ(factors.size(), count);
            ASSERT_EQ(std::accumulate(factors.begin(), factors.end(), 1, std::multiplies<>()), n);
            ASSERT_TRUE(std::ranges::is_sorted(factors, std::greater<>()));
        }
    }
}

TEST(dims, given_extents_are_kept) {
    std::vector<int> dims{0, 3, 0}; // MPI 4.0, example 8.1
    ASSERT_TRUE(choose_dims(6, dims));
    EXPECT_THAT(dims, ElementsAre(2, 3, 1));
    std::vector<int> impossible{0, 3, 0};
    EXPECT_EQ(choose_dims(7, impossible).failure().code(), OMPX_ERR_ARG);
    EXPECT_THAT(impossible, ElementsAre(0, 3, 0)) << "outputs are set on success only";
    std::vector<int> all{2, 3};
    EXPECT_TRUE(choose_dims(6, all));
    EXPECT_FALSE(choose_dims(12, all));
    std::vector<int> negative{-2, -3};
    EXPECT_FALSE(choose_dims(6, negative));
    std::vector<int> huge{65536, 65536, 65536, 65536, 0};
    EXPECT_FALSE(choose_dims(6, huge));
    std::vector<int> most{65536, 65536};
    EXPECT_FALSE(choose_dims(std::numeric_limits<int>::max(), most));
    EXPECT_FALSE(choose_dims(0, std::span(dims)));
}

std::vector<world_rank> ranks_from(int first, int count) {
    std::vector<world_rank> ranks;
    for (int i = 0; i < count; ++i) {
        ranks.emplace_back(first + i);
    }
    return ranks;
}

TEST(grid, last_dimension_varies_fastest) {
    cart_grid const grid({2, 3}, {false, false}, ranks_from(10, 6));
    int rank = 10;
    for (int row = 0; row < 2; ++row) {
        for (int column = 0; column < 3; ++column, ++rank) {
            EXPECT_EQ(grid.rank_at(std::vector{row, column}), world_rank{rank});
            EXPECT_THAT(*grid.coords_of(world_rank{rank}), ElementsAre(row, column));
        }
    }
    EXPECT_EQ(grid.coords_of(world_rank{9}), std::nullopt);
    EXPECT_EQ(grid.rank_at(std::vector{2, 0}), std::nullopt);
    EXPECT_EQ(grid.rank_at(std::vector{0, -1}), std::nullopt);
}

TEST(grid, periodic_dimensions_wrap_and_others_end) {
    cart_grid const grid({2, 3}, {false, true}, ranks_from(0, 6));
    EXPECT_EQ(grid.shifted(world_rank{0}, 0, 1), world_rank{3});
    EXPECT_EQ(grid.shifted(world_rank{0}, 0, -1), std::nullopt);
    EXPECT_EQ(grid.shifted(world_rank{0}, 0, 1LL << 40), std::nullopt);
    EXPECT_EQ(grid.shifted(world_rank{0}, 1, -1), world_rank{2});
    EXPECT_EQ(grid.shifted(world_rank{4}, 1, 7), world_rank{5});
    EXPECT_EQ(grid.shifted(world_rank{4}, 1, -6), world_rank{4});
    EXPECT_EQ(grid.rank_at(std::vector{1, -4}), world_rank{5});
    EXPECT_EQ(grid.rank_at(std::vector{1, INT32_MIN}), grid.rank_at(std::vector{1, -2}));
}

TEST(grid, nodes_become_blocks) {
    // Two nodes of four on a 4 x 2 grid: in rank order each node has 2 x 2 already.
    std::vector<int> const dims{2, 4};
    std::vector<std::uint32_t> const nodes{0, 0, 0, 0, 1, 1, 1, 1};
    auto const arranged = arrange_by_node(dims, nodes);
    ASSERT_TRUE(arranged.has_value());
    EXPECT_THAT(*arranged, ElementsAre(0, 1, 4, 5, 2, 3, 6, 7)) << "two blocks of 2 x 2";
}

TEST(grid, alternating_nodes_are_a_permutation_in_blocks) {
    std::vector<int> const dims{4, 4};
    std::vector<std::uint32_t> nodes;
    for (std::uint32_t i = 0; i < 16; ++i) {
        nodes.push_back(i % 4);
    }
    auto const arranged = arrange_by_node(dims, nodes);
    ASSERT_TRUE(arranged.has_value());
    EXPECT_EQ(std::set<std::size_t>(arranged->begin(), arranged->end()).size(), 16U);
    int between_nodes = 0;
    for (std::size_t row = 0; row < 4; ++row) {
        for (std::size_t column = 0; column + 1 < 4; ++column) {
            between_nodes += static_cast<int>(nodes[(*arranged)[row * 4 + column]] !=
                                              nodes[(*arranged)[row * 4 + column + 1]]);
            between_nodes += static_cast<int>(nodes[(*arranged)[column * 4 + row]] !=
                                              nodes[(*arranged)[(column + 1) * 4 + row]]);
        }
    }
    EXPECT_EQ(between_nodes, 8) << "2 x 2 blocks have the fewest edges between nodes";
}

TEST(grid, nodes_of_different_sizes_are_not_arranged) {
    std::vector<std::uint32_t> const uneven{0, 0, 0, 1};
    EXPECT_EQ(arrange_by_node(std::vector{2, 2}, uneven), std::nullopt);
    std::vector<std::uint32_t> const four{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2};
    EXPECT_NE(arrange_by_node(std::vector{12}, four), std::nullopt);
    std::vector<std::uint32_t> const five{0, 0, 0, 0, 0, 1, 1, 1, 1, 1};
    EXPECT_NE(arrange_by_node(std::vector{2, 5}, five), std::nullopt);
    std::vector<std::uint32_t> const three{0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3};
    EXPECT_EQ(arrange_by_node(std::vector{3, 4},
                              std::vector<std::uint32_t>{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5})
                  .has_value(),
              true);
    EXPECT_TRUE(arrange_by_node(std::vector{3, 4}, three).has_value());
    EXPECT_EQ(arrange_by_node(std::vector{2, 2}, std::vector<std::uint32_t>{0, 0, 0, 0}),
              (std::vector<std::size_t>{0, 1, 2, 3}));
}

} // namespace
} // namespace diomp::cart
