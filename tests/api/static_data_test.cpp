// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory that all ranks have and register together: its own address names that of every rank.
#include "diomp.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace {

int const me = ompx_rank_num();
int const ranks = ompx_num_ranks();
int const next = (me + 1) % ranks;
int const before = (me + ranks - 1) % ranks;

constexpr std::size_t words = 30000;
std::array<std::int64_t, words> g_field; // static storage: in all processes, at different addresses
std::uint64_t g_signal = 0;

std::int64_t value_of(int rank, std::size_t i) { return rank * 1000000 + static_cast<int>(i); }

class static_data : public testing::Test {
protected:
    void SetUp() override {
        g_field.fill(-1);
        g_signal = 0;
        ASSERT_EQ(ompx_register_symmetric(g_field.data(), sizeof(g_field)), 0);
        ASSERT_EQ(ompx_register_symmetric(&g_signal, sizeof(g_signal)), 0);
    }
    void TearDown() override {
        ASSERT_EQ(ompx_unregister_symmetric(&g_signal), 0);
        ASSERT_EQ(ompx_unregister_symmetric(g_field.data()), 0);
    }
};

TEST_F(static_data, takes_puts_gets_and_boxes) {
    std::vector<std::int64_t> source(words);
    for (std::size_t i = 0; i < words; ++i) {
        source[i] = value_of(me, i);
    }
    for (std::size_t const count : {std::size_t{1}, std::size_t{1000}, words}) {
        std::size_t const at = words - count;
        ASSERT_EQ(ompx_put(next, &g_field[at], &source[at], count * 8), 0);
        ASSERT_EQ(ompx_barrier(), 0);
        ASSERT_EQ(g_field[at], value_of(before, at));
        ASSERT_EQ(g_field[words - 1], value_of(before, words - 1));
        std::vector<std::int64_t> back(count);
        ASSERT_EQ(ompx_get(back.data(), before, &g_field[at], count * 8), 0);
        EXPECT_EQ(back.front(), value_of((me + 2 * ranks - 2) % ranks, at));
        ASSERT_EQ(ompx_barrier(), 0);
    }
    std::array<std::size_t, 2> const volume{10, 7};
    std::array<std::size_t, 2> const offsets{3, 90};
    std::array<std::size_t, 2> const none{0, 0};
    std::array<std::size_t, 2> const extents{300, 100};
    ASSERT_EQ(ompx_put_rect(next, g_field.data(), source.data(), 8, 2, volume.data(),
                            offsets.data(), none.data(), extents.data(), extents.data()),
              0);
    ASSERT_EQ(ompx_barrier(), 0);
    EXPECT_EQ(g_field[4 * 100 + 91], value_of(before, 101));
    ASSERT_EQ(ompx_barrier(), 0);
}

TEST_F(static_data, takes_atomics_and_signals) {
    std::int64_t const one = 1;
    for (int to = 0; to < ranks; ++to) {
        ASSERT_EQ(ompx_atomic_add(to, &g_field[5], &one, OMPX_INT64), 0);
    }
    std::int64_t const seven = 7;
    ASSERT_EQ(ompx_put_signal(next, &g_field[9], &seven, 8, &g_signal, 1, OMPX_SIGNAL_SET), 0);
    ASSERT_EQ(ompx_signal_wait(&g_signal, OMPX_CMP_EQ, 1), 0);
    EXPECT_EQ(g_field[9], 7);
    ASSERT_EQ(ompx_barrier(), 0);
    EXPECT_EQ(g_field[5], ranks - 1);
    ASSERT_EQ(ompx_barrier(), 0);
}

// On one node, too, where fences otherwise only order memory.
TEST_F(static_data, is_changed_by_atomics_without_an_event_before_a_fence_returns) {
    for (std::int64_t round = 0; round < 200; ++round) {
        std::int64_t const one = 1;
        std::int64_t old = -5;
        std::int64_t swapped = -5;
        ASSERT_EQ(
            ompx_atomic_fetch_nb(next, &g_field[7], &one, &old, OMPX_INT64, OMPX_SUM, nullptr), 0);
        ASSERT_EQ(ompx_atomic_compare_swap_nb(next, &g_field[8], &g_field[10], &g_field[10],
                                              &swapped, OMPX_INT64, nullptr),
                  0);
        ASSERT_EQ(ompx_fence(), 0);
        ASSERT_EQ(old, round - 1);
        ASSERT_EQ(swapped, -1);
    }
    ASSERT_EQ(ompx_barrier(), 0);
    EXPECT_EQ(g_field[7], 199);
    ASSERT_EQ(ompx_barrier(), 0);
}

TEST_F(static_data, has_an_address_at_every_rank) {
    std::vector<void *> addresses(static_cast<std::size_t>(ranks));
    void *const own = &g_field[100];
    ASSERT_EQ(ompx_allgather(addresses.data(), &own, sizeof(own), nullptr), 0);
    for (int rank = 0; rank < ranks; ++rank) {
        std::size_t nbytes = 0;
        EXPECT_EQ(ompx_global_ptr(&g_field[100], rank, &nbytes),
                  addresses[static_cast<std::size_t>(rank)]);
        EXPECT_EQ(nbytes, (words - 100) * 8);
    }
    ASSERT_EQ(ompx_barrier(), 0);
}

TEST_F(static_data, is_checked) {
    std::int64_t word = 0;
    EXPECT_EQ(ompx_put(next, &g_field[words - 1], g_field.data(), 16), OMPX_ERR_RANGE);
    EXPECT_EQ(ompx_unregister(g_field.data()), OMPX_ERR_ADDRESS);
    EXPECT_THAT(std::string(ompx_last_error()), testing::HasSubstr("ompx_unregister_symmetric"));
    EXPECT_EQ(ompx_unregister_symmetric(&g_field[1]), OMPX_ERR_ADDRESS);
    EXPECT_EQ(ompx_register_symmetric(&word, 0), OMPX_ERR_ARG);
    // One rank's range overlaps, is null, is in its segment: an error on all.
    auto *const symmetric = static_cast<std::int64_t *>(ompx_alloc(8, 0, OMPX_MEM_SYMMETRIC));
    for (void *const bad : {static_cast<void *>(&g_field[3]), static_cast<void *>(nullptr),
                            static_cast<void *>(symmetric)}) {
        EXPECT_EQ(ompx_register_symmetric(me == ranks - 1 ? bad : &word, 8), OMPX_ERR_ADDRESS);
    }
    // Nothing is left behind.
    ASSERT_EQ(ompx_register(&word, 8), 0);
    ASSERT_EQ(ompx_unregister(&word), 0);
    if (ranks > 1) {
        EXPECT_EQ(ompx_register_symmetric(&word, me == 0 ? 8 : 4), OMPX_ERR_MISMATCH);
        EXPECT_EQ(ompx_unregister_symmetric(me == 0 ? static_cast<void *>(g_field.data())
                                                    : static_cast<void *>(&g_signal)),
                  OMPX_ERR_MISMATCH);
    }
    EXPECT_EQ(ompx_free(symmetric), 0);
}

TEST(registration, can_be_repeated_and_needs_no_equal_addresses) {
    for (int round = 0; round < 10; ++round) {
        std::vector<char> unused(static_cast<std::size_t>(1000 * (me + 1) + round * 64));
        std::vector<std::int64_t> block(100 + static_cast<std::size_t>(me) * 7, -1);
        ASSERT_EQ(ompx_register_symmetric(block.data(), 100 * 8), 0);
        std::int64_t const word = value_of(me, static_cast<std::size_t>(round));
        ASSERT_EQ(ompx_put(next, &block[50], &word, 8), 0);
        ASSERT_EQ(ompx_barrier(), 0);
        EXPECT_EQ(block[50], value_of(before, static_cast<std::size_t>(round)));
        ASSERT_EQ(ompx_unregister_symmetric(block.data()), 0);
        EXPECT_EQ(ompx_put(next, &block[50], &word, 8), OMPX_ERR_ADDRESS);
        ASSERT_EQ(ompx_barrier(), 0);
    }
}

} // namespace
