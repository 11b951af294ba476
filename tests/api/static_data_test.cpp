// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory that all ranks have and register together: its own address names that of every rank.
#include "diomp.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

int const me = ompx_rank_num();
int const ranks = ompx_num_ranks();
int const next = (me + 1) % ranks;
int const before = (me + ranks - 1) % ranks;

constexpr std::size_t words = 30000;
std::array<std::int64_t, words> g_field; // static storage: in all processes, at different addresses
std::uint64_t g_signal = 0;
std::array<int, 4096> g_initialised{10, 11, 12};
char g_text[4096] = "unchanged";
std::array<std::uint32_t, 3> g_words;

// Static data stays private then (docs/memory.md).
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool keeps_data_private = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool keeps_data_private = true;
#else
constexpr bool keeps_data_private = false;
#endif
#else
constexpr bool keeps_data_private = false;
#endif

bool is_on_node(int rank) {
    auto *const probe = static_cast<char *>(ompx_alloc(1, 0, OMPX_MEM_SYMMETRIC));
    bool const found = ompx_remote_ptr(probe, rank) != nullptr;
    EXPECT_EQ(ompx_free(probe), 0);
    return found;
}

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

TEST_F(static_data, is_loaded_and_stored_by_ranks_of_the_node) {
    g_field[3] = value_of(me, 3);
    ASSERT_EQ(ompx_barrier(), 0);
    auto *const there = static_cast<std::int64_t *>(ompx_remote_ptr(&g_field[3], next));
    bool const is_private = keeps_data_private && next != me;
    EXPECT_EQ(there != nullptr, !is_private && is_on_node(next));
    if (there != nullptr) {
        EXPECT_EQ(*there, value_of(next, 3));
        ASSERT_EQ(ompx_sync(nullptr), 0);
        *there = -8;
    } else {
        ASSERT_EQ(ompx_sync(nullptr), 0);
    }
    ASSERT_EQ(ompx_barrier(), 0);
    if (is_on_node(before) && !is_private) {
        EXPECT_EQ(g_field[3], -8);
    }
    ASSERT_EQ(ompx_barrier(), 0);
}

TEST_F(static_data, keeps_what_variables_hold) {
    EXPECT_EQ(g_initialised[1], 11);
    EXPECT_EQ(g_initialised[4095], 0);
    EXPECT_EQ(std::string(g_text), "unchanged");
    g_initialised[2] = me;
    EXPECT_EQ(g_initialised[2], me);
}

// Of variables, a forked child has copies.
TEST_F(static_data, is_not_shared_with_children) {
    g_field[0] = 41;
    g_initialised[3] = 5;
    pid_t const child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        bool const is_copy = g_field[0] == 41 && g_initialised[3] == 5 && g_field[words - 1] == -1;
        g_field[0] = 42;
        g_initialised[3] = 6;
        _exit(is_copy && g_field[0] == 42 && g_initialised[3] == 6 ? 0 : 1);
    }
    int outcome = -1;
    ASSERT_EQ(waitpid(child, &outcome, 0), child);
    EXPECT_EQ(outcome, 0);
    EXPECT_EQ(g_field[0], 41);
    EXPECT_EQ(g_initialised[3], 5);
    ASSERT_EQ(ompx_barrier(), 0);
    // Transfers still reach the parent.
    std::int64_t const word = value_of(me, 0);
    ASSERT_EQ(ompx_put(next, &g_field[0], &word, 8), 0);
    ASSERT_EQ(ompx_barrier(), 0);
    EXPECT_EQ(g_field[0], value_of(before, 0));
    ASSERT_EQ(ompx_barrier(), 0);
}

TEST_F(static_data, takes_the_addresses_of_other_ranks) {
    std::vector<std::int64_t *> addresses(static_cast<std::size_t>(ranks));
    std::int64_t *const own = &g_field[20];
    ASSERT_EQ(ompx_allgather(addresses.data(), &own, sizeof(own), nullptr), 0);
    std::int64_t *const there = addresses[static_cast<std::size_t>(next)];
    std::int64_t const one = 1;
    std::int64_t old = 0;
    for (int i = 0; i < 100; ++i) { // both names of one word
        ASSERT_EQ(ompx_atomic_add(next, there, &one, OMPX_INT64), 0);
        ASSERT_EQ(ompx_atomic_fetch_add(next, own, &one, &old, OMPX_INT64), 0);
    }
    ASSERT_EQ(ompx_barrier(), 0);
    EXPECT_EQ(g_field[20], 199);
    ASSERT_EQ(ompx_barrier(), 0);
}

TEST_F(static_data, takes_atomics_of_all_operators) {
    std::uint32_t *const word = g_words.data() + 1;
    ASSERT_EQ(ompx_register_symmetric(g_words.data(), sizeof(g_words)), 0);
    *word = 0xf0;
    ASSERT_EQ(ompx_barrier(), 0);
    auto const change = [&](ompx_op_t op, std::uint32_t operand) {
        std::uint32_t old = 0;
        EXPECT_EQ(ompx_atomic_fetch(next, word, &operand, &old, OMPX_UINT32, op), 0);
        return old;
    };
    EXPECT_EQ(change(OMPX_BOR, 0x0f), 0xf0U);
    EXPECT_EQ(change(OMPX_BAND, 0x3c), 0xffU);
    EXPECT_EQ(change(OMPX_BXOR, 0xff), 0x3cU);
    EXPECT_EQ(change(OMPX_MAX, 0x1000), 0xc3U);
    EXPECT_EQ(change(OMPX_MIN, 7), 0x1000U);
    EXPECT_EQ(change(OMPX_SUM, static_cast<std::uint32_t>(-8)), 7U);
    EXPECT_EQ(change(OMPX_REPLACE, 9), 0xffffffffU);
    EXPECT_EQ(change(OMPX_NO_OP, 1), 9U);
    std::uint32_t const nine = 9;
    std::uint32_t const three = 3;
    std::uint32_t old = 0;
    EXPECT_EQ(ompx_atomic_compare_swap(next, word, &three, &nine, &old, OMPX_UINT32), 0);
    EXPECT_EQ(old, 9U);
    EXPECT_EQ(ompx_atomic_compare_swap(next, word, &nine, &three, &old, OMPX_UINT32), 0);
    EXPECT_EQ(change(OMPX_NO_OP, 0), 3U);
    ASSERT_EQ(ompx_barrier(), 0);
    EXPECT_EQ(*word, 3U);
    EXPECT_EQ(g_words[0], 0U);
    EXPECT_EQ(g_words[2], 0U);
    ASSERT_EQ(ompx_unregister_symmetric(g_words.data()), 0);
}

TEST_F(static_data, is_checked_by_atomics) {
    std::int64_t const one = 1;
    std::int64_t old = 0;
    auto *const odd = reinterpret_cast<char *>(&g_field[1]) + 4;
    EXPECT_EQ(ompx_atomic_fetch(next, odd, &one, &old, OMPX_INT64, OMPX_SUM), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_atomic_fetch(next, &g_field[1], nullptr, &old, OMPX_INT64, OMPX_SUM),
              OMPX_ERR_ARG);
    EXPECT_EQ(ompx_atomic_fetch(ranks, &g_field[1], &one, &old, OMPX_INT64, OMPX_SUM),
              OMPX_ERR_RANK);
    EXPECT_EQ(ompx_atomic_fetch(next, &g_field[1], &one, &old, OMPX_INT64, OMPX_PROD),
              OMPX_ERR_ARG);
    EXPECT_EQ(ompx_atomic_fetch(next, nullptr, &one, &old, OMPX_INT64, OMPX_SUM), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_atomic_compare_swap(next, &g_field[1], &one, nullptr, &old, OMPX_INT64),
              OMPX_ERR_ARG);
    EXPECT_EQ(g_field[1], -1);
    ASSERT_EQ(ompx_barrier(), 0);
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
        ASSERT_EQ(ompx_barrier(), 0);
        EXPECT_EQ(ompx_put(next, &block[50], &word, 8), OMPX_ERR_ADDRESS);
        ASSERT_EQ(ompx_barrier(), 0);
    }
}

} // namespace
