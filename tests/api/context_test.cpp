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

TEST(contexts, complete_atomics) {
    constexpr int rounds = 300; // more than the events that a context keeps without a look at them
    auto const data = diomp::make_symmetric<std::int64_t[]>(2);
    data[0] = data[1] = 0;
    ASSERT_EQ(ompx_barrier(), 0);
    diomp::context context;
    std::vector<std::int64_t> olds(rounds, -1);
    auto const sum = diomp::at(next, data.get());
    for (int round = 0; round < rounds; ++round) { // the only writer: values are known
        context.fetch_nb(sum, 2, OMPX_SUM, olds[static_cast<std::size_t>(round)]);
        context.update_nb(sum, 1, OMPX_SUM);
    }
    context.fence();
    std::int64_t total = 0;
    for (std::int64_t const value : olds) {
        EXPECT_GE(value, 0);
        total += value;
    }
    EXPECT_GE(total,
              2 * rounds * (rounds - 1) / 2); // unordered, but each counts the fetches before
    EXPECT_EQ(diomp::atomic_load(sum), 3 * rounds) << "the fence completes those without result";

    auto const word = diomp::at(next, data.get() + 1);
    std::int64_t found = -1;
    context.compare_exchange_nb(word, 0, 7, found);
    context.fence();
    EXPECT_EQ(found, 0);
    context.compare_exchange_nb(word, 0, 8, found);
    context.fence();
    EXPECT_EQ(found, 7);
    ASSERT_EQ(ompx_barrier(), 0);
    EXPECT_EQ(data[1], 7);
}

TEST(contexts, complete_puts_with_signals) {
    constexpr std::size_t rounds = 30;
    for (std::size_t const words : {std::size_t{0}, std::size_t{1}, std::size_t{9000}}) {
        auto const data = diomp::make_symmetric<std::int64_t[]>(words + 1);
        auto const signal = diomp::make_symmetric<std::uint64_t[]>(1);
        signal[0] = 0;
        ASSERT_EQ(ompx_barrier(), 0);
        diomp::context context;
        std::vector<std::int64_t> source(words);
        for (std::size_t round = 1; round <= rounds; ++round) {
            for (std::size_t i = 0; i < words; ++i) {
                source[i] = value_of(me, round, i);
            }
            context.put_signal_nb(diomp::at(next, data.get()), source,
                                  diomp::at(next, signal.get()), 1, OMPX_SIGNAL_ADD);
            context.fence();
            source.assign(words, -1); // may be reused
            ASSERT_EQ(diomp::signal_wait(signal.get(), OMPX_CMP_GE, round), round);
            for (std::size_t i = 0; i < words; ++i) {
                ASSERT_EQ(data[i], value_of(before, round, i)) << round << ' ' << i;
            }
            ASSERT_EQ(ompx_barrier(), 0);
        }
    }
}

TEST(contexts, of_static_data) {
    static std::int64_t field[3];
    field[0] = 1;
    field[1] = field[2] = 0;
    ASSERT_EQ(ompx_register_symmetric(field, sizeof(field)), 0);
    diomp::context context;
    std::int64_t old = 0;
    context.fetch_nb(diomp::at(next, &field[0]), 5, OMPX_SUM, old);
    std::vector<std::int64_t> const sent{9};
    context.put_signal_nb(diomp::at(next, &field[1]), sent,
                          diomp::at(next, reinterpret_cast<std::uint64_t *>(&field[2])), 4);
    context.fence();
    EXPECT_EQ(old, 1);
    ASSERT_EQ(ompx_barrier(), 0);
    EXPECT_EQ(field[0], 6);
    EXPECT_EQ(field[1], 9);
    EXPECT_EQ(field[2], 4);
    ASSERT_EQ(ompx_unregister_symmetric(field), 0);
}

TEST(contexts, misuse_of_atomics_and_signals_is_an_error) {
    auto const data = diomp::make_symmetric<std::int64_t[]>(2);
    auto *const signal = reinterpret_cast<std::uint64_t *>(data.get() + 1);
    std::int64_t word = 1;
    std::int64_t old = 0;
    auto const fetch = [&](ompx_context_t context, int rank, void *target, ompx_op_t op) {
        return ompx_context_atomic_fetch_nb(context, rank, target, &word, &old, OMPX_INT64, op);
    };
    auto const put = [&](ompx_context_t context, int rank, std::uint64_t *at) {
        return ompx_context_put_signal_nb(context, rank, data.get(), &word, 8, at, 1,
                                          OMPX_SIGNAL_SET);
    };
    diomp::context const context;
    EXPECT_EQ(fetch(nullptr, 0, data.get(), OMPX_SUM), OMPX_ERR_ARG);
    EXPECT_EQ(fetch(context.handle(), ranks, data.get(), OMPX_SUM), OMPX_ERR_RANK);
    EXPECT_EQ(fetch(context.handle(), 0, nullptr, OMPX_SUM), OMPX_ERR_ARG);
    EXPECT_EQ(fetch(context.handle(), 0, data.get(), OMPX_PROD), OMPX_ERR_ARG);
    EXPECT_EQ(fetch(context.handle(), 0, reinterpret_cast<char *>(data.get()) + 1, OMPX_SUM),
              OMPX_ERR_ARG);
    EXPECT_EQ(
        ompx_context_atomic_compare_swap_nb(nullptr, 0, data.get(), &word, &word, &old, OMPX_INT64),
        OMPX_ERR_ARG);
    EXPECT_EQ(ompx_context_atomic_compare_swap_nb(context.handle(), -1, data.get(), &word, &word,
                                                  &old, OMPX_INT64),
              OMPX_ERR_RANK);
    EXPECT_EQ(put(nullptr, 0, signal), OMPX_ERR_ARG);
    EXPECT_EQ(put(context.handle(), ranks, signal), OMPX_ERR_RANK);
    EXPECT_EQ(put(context.handle(), 0, nullptr), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_context_fence(context.handle()), 0) << "nothing was started";
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
