// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Contexts: their fence completes their transfers, of several threads apart from each other.
#include "diomp.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

namespace {

int const me = ompx_rank_num();
int const ranks = ompx_num_ranks();
int const next = (me + 1) % ranks;
int const before = (me + ranks - 1) % ranks;

std::int64_t value_of(int rank, std::size_t round, std::size_t i) {
    return rank * 1000000 + static_cast<std::int64_t>(round * 1000 + i);
}

class sizes : public testing::TestWithParam<std::size_t> {};

TEST_P(sizes, are_complete_after_the_contexts_fence) {
    std::size_t const words = GetParam();
    auto const data =
        diomp::make_symmetric<std::int64_t[]>(words * static_cast<std::size_t>(ranks));
    ompx_context_t context = nullptr;
    ASSERT_EQ(ompx_context_create(&context), 0);
    ASSERT_NE(context, nullptr);
    std::vector<std::int64_t> source(words);
    for (std::size_t round = 0; round < 20; ++round) {
        for (std::size_t i = 0; i < words; ++i) {
            source[i] = value_of(me, round, i);
        }
        auto *const mine = data.get() + words * static_cast<std::size_t>(me);
        for (int to = 0; to < ranks; ++to) {
            ASSERT_EQ(ompx_context_put_nb(context, to, mine, source.data(), words * 8), 0);
        }
        ASSERT_EQ(ompx_context_fence(context), 0);
        source.assign(words, -1); // may be reused
        std::vector<std::vector<std::int64_t>> back(static_cast<std::size_t>(ranks),
                                                    std::vector<std::int64_t>(words));
        for (int from = 0; from < ranks; ++from) {
            ASSERT_EQ(ompx_context_get_nb(context, back[static_cast<std::size_t>(from)].data(),
                                          from, mine, words * 8),
                      0);
        }
        ASSERT_EQ(ompx_context_fence(context), 0);
        for (auto const &each : back) {
            for (std::size_t i = 0; i < words; ++i) {
                ASSERT_EQ(each[i], value_of(me, round, i)) << round << ' ' << i;
            }
        }
    }
    ASSERT_EQ(ompx_context_fence(context), 0); // nothing to do
    ASSERT_EQ(ompx_context_free(&context), 0);
    EXPECT_EQ(context, nullptr);
    ASSERT_EQ(ompx_barrier(), 0);
}
INSTANTIATE_TEST_SUITE_P(words, sizes, testing::Values(0, 1, 300, 20000));

TEST(contexts, of_several_threads_are_independent) {
    constexpr std::size_t threads = 3;
    constexpr std::size_t words = 500;
    auto const data = diomp::make_symmetric<std::int64_t[]>(words * threads);
    std::atomic<int> wrong{0};
    auto const work = [&](std::size_t number) {
        diomp::context context;
        auto const there = diomp::at(next, data.get() + words * number);
        std::vector<std::int64_t> source(words);
        std::vector<std::int64_t> back(words);
        for (std::size_t round = 0; round < 100; ++round) {
            for (std::size_t i = 0; i < words; ++i) {
                source[i] = value_of(me, round, i + number);
            }
            context.put_nb(there, source);
            context.fence();
            context.get_nb(back, there);
            context.fence();
            wrong += back == source ? 0 : 1;
        }
        diomp::context const moved(std::move(context)); // frees one handle once
    };
    std::vector<std::thread> all;
    for (std::size_t number = 0; number < threads; ++number) {
        all.emplace_back(work, number);
    }
    for (std::thread &each : all) {
        each.join();
    }
    EXPECT_EQ(wrong, 0);
    ASSERT_EQ(ompx_barrier(), 0);
    EXPECT_EQ(data[words], value_of(before, 99, 1));
    ASSERT_EQ(ompx_barrier(), 0);
}

TEST(contexts, misuse_is_an_error) {
    auto const data = diomp::make_symmetric<std::int64_t[]>(1);
    std::int64_t word = 0;
    ompx_context_t none = nullptr;
    EXPECT_EQ(ompx_context_create(nullptr), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_context_free(nullptr), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_context_free(&none), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_context_fence(none), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_context_put_nb(none, 0, data.get(), &word, 8), OMPX_ERR_ARG);
    diomp::context const context;
    EXPECT_EQ(ompx_context_put_nb(context.handle(), ranks, data.get(), &word, 8), OMPX_ERR_RANK);
    EXPECT_EQ(ompx_context_put_nb(context.handle(), 0, nullptr, &word, 8), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_context_put_nb(context.handle(), next, &word, &word, 8), OMPX_ERR_ADDRESS);
    EXPECT_EQ(ompx_context_get_nb(context.handle(), nullptr, 0, data.get(), 8), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_context_get_nb(context.handle(), &word, -1, data.get(), 8), OMPX_ERR_RANK);
    ASSERT_EQ(ompx_barrier(), 0);
}

} // namespace
