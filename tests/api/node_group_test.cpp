// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Groups split by node, and the members on the caller's node.
#include "diomp.hpp"
#include "support/nodes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <vector>

namespace {

int const me = ompx_rank_num();
int const ranks = ompx_num_ranks();

/// The world ranks of a group.
std::vector<int> world_ranks(diomp::group_ref of) {
    std::vector<int> list(static_cast<std::size_t>(of.size()));
    for (std::size_t i = 0; i < list.size(); ++i) {
        list[i] = of.world_rank(static_cast<int>(i));
    }
    return list;
}

std::vector<int> mapped_of(const std::vector<int> &list) {
    std::vector<int> mapped;
    std::ranges::copy_if(list, std::back_inserter(mapped), diomp_test::is_mapped);
    return mapped;
}

TEST(node_groups, hold_the_ranks_that_are_mapped_here) {
    auto const node = diomp::group::split_node();
    std::vector<int> const members = world_ranks(node);
    EXPECT_EQ(members, mapped_of(world_ranks({})));
    EXPECT_EQ(diomp::group_ref().node_members(), members);
    EXPECT_EQ(node.world_rank(node.rank()), me);
    auto const data = diomp::make_symmetric<int[]>(1);
    for (int const rank : members) {
        EXPECT_NE(ompx_remote_ptr(data.get(), rank), nullptr) << rank;
    }
    int const sum = diomp::allreduce(me, diomp::op::sum, node);
    EXPECT_EQ(sum, std::accumulate(members.begin(), members.end(), 0));
    ASSERT_EQ(ompx_barrier(), 0);
}

/// The group's order counts, not that of the world.
TEST(node_groups, follow_the_order_of_the_group) {
    auto const backwards = diomp::group::split({}, 0, -me);
    auto const node = diomp::group::split_node(backwards);
    EXPECT_EQ(world_ranks(node), mapped_of(world_ranks(backwards)));
    std::vector<int> translated;
    for (int const member : diomp::group_ref(backwards).node_members()) {
        translated.push_back(backwards.world_rank(member));
    }
    EXPECT_EQ(translated, world_ranks(node));
    // Split again: the members are those before.
    auto const again = diomp::group::split_node(node);
    EXPECT_EQ(world_ranks(again), world_ranks(node));
    ASSERT_EQ(ompx_barrier(), 0);
}

TEST(node_groups, endpoints_are_members_too) {
    std::vector<ompx_endpoint_t> list;
    for (int rank = 0; rank < ranks; ++rank) {
        list.push_back({rank, -1});
        list.push_back({rank, 1000});
    }
    auto const all = diomp::group::of_endpoints(list);
    auto const node = diomp::group::split_node(all);
    std::vector<int> const members = diomp::group_ref(all).node_members();
    ASSERT_EQ(static_cast<int>(members.size()), node.size());
    for (std::size_t i = 0; i < members.size(); ++i) {
        auto const expected = diomp::group_ref(all).endpoint(members[i]);
        auto const found = diomp::group_ref(node).endpoint(static_cast<int>(i));
        EXPECT_EQ(expected.rank, found.rank);
        EXPECT_EQ(expected.device, found.device);
        EXPECT_TRUE(diomp_test::is_mapped(found.rank));
    }
    ASSERT_EQ(ompx_barrier(), 0);
}

TEST(node_groups, misuse_is_an_error) {
    std::array<int, 1> first{-7};
    int const on_node = ompx_group_node_members(nullptr, first.data(), 1);
    EXPECT_EQ(on_node, static_cast<int>(mapped_of(world_ranks({})).size()));
    EXPECT_EQ(first[0], mapped_of(world_ranks({})).front());
    EXPECT_EQ(ompx_group_node_members(nullptr, nullptr, 0), on_node);
    EXPECT_EQ(ompx_group_node_members(nullptr, nullptr, 1), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_group_node_members(nullptr, first.data(), -1), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_group_node_members(OMPX_GROUP_NONE, first.data(), 1), OMPX_ERR_ARG);
    ompx_group_t made = nullptr;
    EXPECT_EQ(ompx_group_split_node(OMPX_GROUP_NONE, &made), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_group_split_node(nullptr, nullptr), OMPX_ERR_ARG);
    ASSERT_EQ(ompx_barrier(), 0);
}

} // namespace
