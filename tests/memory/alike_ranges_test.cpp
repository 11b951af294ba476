// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "memory/internal/alike_ranges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <random>
#include <set>
#include <vector>

namespace diomp::memory {
namespace {

constexpr std::uint64_t capacity = std::uint64_t{1} << 30;
constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();

/// The private heap of a rank.
struct rank_heap {
    heap memory{heap::direction::from_end, capacity};
    alike_ranges alike{memory};
    std::set<std::uint64_t> own; ///< blocks of this rank alone
};

class ranks_of_one_slot : public testing::Test {
protected:
    std::optional<std::uint64_t> allocate(const std::vector<std::size_t> &sizes,
                                          std::size_t alignment = 64,
                                          std::uint64_t limit = no_limit) {
        alike_ranges::request wanted{.max_bytes = *std::ranges::max_element(sizes),
                                     .alignment = alignment};
        for (auto const &each : ranks) {
            wanted.extent_bytes = std::max(wanted.extent_bytes, each->memory.extent());
        }
        std::optional<std::uint64_t> offset;
        for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
            wanted.nbytes = sizes[rank];
            auto const mine = ranks[rank]->alike.allocate(wanted, limit);
            EXPECT_TRUE(rank == 0 || mine == offset);
            offset = mine;
        }
        return offset;
    }
    void release(std::uint64_t offset) {
        for (auto &each : ranks) {
            EXPECT_TRUE(each->alike.release(offset, no_limit, [](auto &) {}));
        }
    }
    void allocate_own(std::size_t rank, std::size_t nbytes) {
        auto const offset = ranks[rank]->memory.allocate(nbytes, 64, no_limit);
        ASSERT_TRUE(offset);
        ranks[rank]->own.insert(*offset);
    }
    void release_own(std::size_t rank, std::uint64_t offset) {
        ASSERT_TRUE(ranks[rank]->memory.release(offset));
        ranks[rank]->own.erase(offset);
    }

    std::vector<std::unique_ptr<rank_heap>> ranks = [] {
        std::vector<std::unique_ptr<rank_heap>> made;
        for (int rank = 0; rank < 3; ++rank) {
            made.push_back(std::make_unique<rank_heap>());
        }
        return made;
    }();
};

TEST_F(ranks_of_one_slot, blocks_begin_at_one_offset_though_sizes_and_other_blocks_differ) {
    allocate_own(0, 1000);
    allocate_own(1, 5000);
    auto const first = allocate({10, 0, 2000});
    ASSERT_TRUE(first);
    EXPECT_EQ(*first % 64, 0U);
    allocate_own(2, 100000);
    auto const second = allocate({1 << 20, 64, 1}, 4096);
    ASSERT_TRUE(second);
    EXPECT_EQ(*second % 4096, 0U);
    EXPECT_EQ(ranks[0]->memory.find(*first)->nbytes, 10U);
    EXPECT_EQ(ranks[1]->memory.find(*first)->nbytes, 0U);
    EXPECT_EQ(ranks[1]->memory.find(*first)->reserved, 2048U);
}

TEST_F(ranks_of_one_slot, no_block_of_a_rank_alone_lies_where_another_rank_has_its_part) {
    auto const block = allocate({64, 1 << 16, 64});
    ASSERT_TRUE(block);
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        for (int i = 0; i < 100; ++i) {
            allocate_own(rank, 1024);
        }
        for (std::uint64_t const offset : ranks[rank]->own) {
            EXPECT_TRUE(offset + 1024 <= *block || offset >= *block + (1 << 16));
        }
    }
}

TEST_F(ranks_of_one_slot, a_freed_range_is_used_again_and_never_by_one_rank_alone) {
    auto const first = allocate({4096, 100, 0});
    auto const second = allocate({64, 64, 64});
    ASSERT_TRUE(first && second);
    release(*first);
    EXPECT_TRUE(ranks[1]->alike.is_free(*first));
    EXPECT_EQ(ranks[1]->alike.free_bytes(), 4096U);
    allocate_own(1, 4096);
    EXPECT_EQ(allocate({1, 2048, 1}), *first + 2048); // from the end
    EXPECT_EQ(allocate({2048, 0, 0}), *first);
    EXPECT_EQ(ranks[0]->alike.free_bytes(), 0U);
}

TEST_F(ranks_of_one_slot, the_last_range_is_given_back_with_free_ones_before_it) {
    auto const first = allocate({100, 0, 0});
    allocate_own(2, 777); // the next block is not adjacent
    auto const second = allocate({100, 0, 0});
    auto const third = allocate({100, 0, 0});
    ASSERT_TRUE(first && second && third);
    release(*first);
    release(*second);
    EXPECT_GT(ranks[0]->alike.num_free(), 0U);
    release(*third);
    EXPECT_EQ(ranks[0]->alike.num_free(), 0U);
    EXPECT_EQ(ranks[0]->memory.num_blocks(), 0U);
    EXPECT_EQ(ranks[2]->memory.num_blocks(), 1U);
}

TEST_F(ranks_of_one_slot, a_failure_changes_nothing) {
    auto const first = allocate({100, 0, 0});
    ASSERT_TRUE(first);
    EXPECT_FALSE(allocate({5000, 0, 0}, 64, 4096));
    EXPECT_FALSE(allocate({capacity + 1, 0, 0}));
    EXPECT_EQ(ranks[0]->memory.num_blocks(), 1U);
    EXPECT_TRUE(allocate({3000, 0, 0}, 64, 4096));
}

TEST_F(ranks_of_one_slot, does_not_release_blocks_of_others) {
    allocate_own(0, 64);
    EXPECT_FALSE(ranks[0]->alike.release(*ranks[0]->own.begin(), no_limit, [](auto &) {}));
    EXPECT_FALSE(ranks[0]->alike.release(64, no_limit, [](auto &) {}));
}

// Ping-pong and random orders must not use up the addresses.
TEST_F(ranks_of_one_slot, many_calls_in_any_order) {
    std::mt19937 random(11);
    std::vector<std::uint64_t> live;
    for (int round = 0; round < 20000; ++round) {
        auto const what = random() % 4;
        if (what == 0 || live.size() > 40) {
            if (!live.empty()) {
                std::swap(live[random() % live.size()], live.back());
                release(live.back());
                live.pop_back();
            }
        } else if (what == 1) {
            std::vector<std::size_t> sizes(3);
            for (auto &each : sizes) {
                each = random() % 20000;
            }
            auto const offset = allocate(sizes, std::size_t{64} << random() % 4);
            ASSERT_TRUE(offset);
            live.push_back(*offset);
        } else {
            std::size_t const rank = random() % 3;
            if (ranks[rank]->own.size() > 50) {
                release_own(rank, *ranks[rank]->own.begin());
            } else {
                allocate_own(rank, random() % 3000);
            }
        }
    }
    for (auto const &each : ranks) {
        EXPECT_LT(each->memory.extent(), std::uint64_t{8} << 20);
        EXPECT_EQ(each->alike.free_bytes(), ranks[0]->alike.free_bytes());
    }
    for (std::uint64_t const offset : live) {
        release(offset);
    }
    EXPECT_EQ(ranks[0]->alike.free_bytes(), 0U);
    EXPECT_EQ(ranks[0]->memory.num_blocks(), ranks[0]->own.size());
}

} // namespace
} // namespace diomp::memory
