// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Waits for and tests of one and of several words, in C and in C++.
#include "diomp.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace {

int const me = ompx_rank_num();
int const ranks = ompx_num_ranks();

/// Symmetric words, zero at first.
template <typename T>
class words {
public:
    explicit words(std::size_t count)
        : memory_(diomp::make_symmetric<T[]>(count)), span_(memory_.get(), count) {}
    [[nodiscard]] T *get() const { return memory_.get(); }
    [[nodiscard]] std::span<T> all() const { return span_; }
    ~words() { ompx_barrier(); }
    words(const words &) = delete;
    words &operator=(const words &) = delete;

private:
    diomp::owner<T[]> memory_;
    std::span<T> span_;
};

/// Every rank signals every rank; each waits in the way that `wait_for_all` shows.
template <typename Wait>
void exchange_signals(Wait &&wait_for_all) {
    words<std::uint64_t> const signals(static_cast<std::size_t>(ranks));
    words<int> const data(static_cast<std::size_t>(ranks));
    for (int round = 1; round <= 20; ++round) {
        auto const value = static_cast<std::uint64_t>(round);
        int const sent = 1000 * round + me;
        for (int i = 0; i < ranks; ++i) {
            int const to = (me + i) % ranks;
            ASSERT_EQ(ompx_put_signal(to, data.get() + me, &sent, sizeof(sent), signals.get() + me,
                                      value, OMPX_SIGNAL_SET),
                      0);
        }
        wait_for_all(signals.all(), value, [&](std::size_t from) {
            EXPECT_EQ(data.get()[from], 1000 * round + static_cast<int>(from));
        });
        ASSERT_EQ(ompx_barrier(), 0);
    }
}

TEST(waits, any_finds_each_signal_once) {
    exchange_signals([](std::span<std::uint64_t> signals, std::uint64_t value, auto &&arrived) {
        std::vector<int> skip(signals.size());
        for (std::size_t i = 0; i < signals.size(); ++i) {
            std::size_t index = OMPX_NO_INDEX;
            ASSERT_EQ(ompx_signal_wait_any(signals.data(), signals.size(), skip.data(), OMPX_CMP_EQ,
                                           value, &index),
                      0);
            ASSERT_LT(index, signals.size());
            ASSERT_EQ(skip[index], 0);
            skip[index] = 1;
            arrived(index);
        }
        std::size_t index = 0;
        ASSERT_EQ(ompx_signal_wait_any(signals.data(), signals.size(), skip.data(), OMPX_CMP_EQ,
                                       value, &index),
                  0);
        ASSERT_EQ(index, OMPX_NO_INDEX) << "nothing is left to wait for";
    });
}

TEST(waits, some_finds_all_that_have_arrived) {
    exchange_signals([](std::span<std::uint64_t> signals, std::uint64_t value, auto &&arrived) {
        std::vector<int> skip(signals.size());
        std::vector<std::size_t> indices(signals.size());
        for (std::size_t left = signals.size(); left > 0;) {
            std::size_t num_found = 0;
            ASSERT_EQ(ompx_signal_wait_some(signals.data(), signals.size(), skip.data(),
                                            OMPX_CMP_GE, value, indices.data(), &num_found),
                      0);
            ASSERT_GE(num_found, 1U);
            ASSERT_LE(num_found, left);
            left -= num_found;
            for (std::size_t i = 0; i < num_found; ++i) {
                ASSERT_EQ(skip[indices[i]], 0);
                skip[indices[i]] = 1;
                arrived(indices[i]);
            }
        }
    });
}

TEST(waits, all_returns_after_the_last) {
    exchange_signals([](std::span<std::uint64_t> signals, std::uint64_t value, auto &&arrived) {
        ASSERT_EQ(ompx_signal_wait_all(signals.data(), signals.size(), nullptr, OMPX_CMP_EQ, value),
                  0);
        ASSERT_EQ(ompx_signal_test_all(signals.data(), signals.size(), nullptr, OMPX_CMP_EQ, value),
                  1);
        for (std::size_t from = 0; from < signals.size(); ++from) {
            arrived(from);
        }
    });
}

TEST(waits, tests_make_progress_until_the_signals_arrive) {
    exchange_signals([](std::span<std::uint64_t> signals, std::uint64_t value, auto &&arrived) {
        std::vector<int> skip(signals.size());
        for (std::size_t i = 0; i < signals.size(); ++i) {
            std::size_t index = OMPX_NO_INDEX;
            int found = 0;
            while ((found = ompx_signal_test_any(signals.data(), signals.size(), skip.data(),
                                                 OMPX_CMP_EQ, value, &index)) == 0) {
                ASSERT_EQ(index, OMPX_NO_INDEX);
            }
            ASSERT_EQ(found, 1);
            ASSERT_EQ(ompx_signal_test(&signals[index], OMPX_CMP_EQ, value), 1);
            skip[index] = 1;
            arrived(index);
        }
        std::vector<std::size_t> indices(signals.size());
        std::size_t num_found = 7;
        EXPECT_EQ(ompx_signal_test_some(signals.data(), signals.size(), skip.data(), OMPX_CMP_EQ,
                                        value, indices.data(), &num_found),
                  0);
        EXPECT_EQ(num_found, 0U);
        EXPECT_EQ(ompx_signal_test_some(signals.data(), signals.size(), nullptr, OMPX_CMP_EQ, value,
                                        indices.data(), &num_found),
                  1);
        EXPECT_EQ(num_found, signals.size());
    });
}

TEST(waits, progress_alone_lets_signals_arrive) {
    exchange_signals([](std::span<std::uint64_t> signals, std::uint64_t value, auto &&arrived) {
        for (std::size_t from = 0; from < signals.size(); ++from) {
            while (__atomic_load_n(&signals[from], __ATOMIC_ACQUIRE) != value) {
                ASSERT_EQ(ompx_progress(), 0);
            }
            arrived(from);
        }
    });
}

TEST(waits, the_value_that_ended_the_wait_is_returned) {
    words<std::uint64_t> const signal(1);
    words<std::uint64_t> const reply(1);
    int const right = (me + 1) % ranks;
    int const left = (me + ranks - 1) % ranks;
    for (std::uint64_t round = 1; round <= 50; ++round) {
        ASSERT_EQ(ompx_put_signal(right, nullptr, nullptr, 0, signal.get(), 3, OMPX_SIGNAL_ADD), 0);
        std::uint64_t found = 0;
        ASSERT_EQ(ompx_signal_wait_fetch(signal.get(), OMPX_CMP_GT, 3 * (round - 1), &found), 0);
        ASSERT_EQ(found, 3 * round);
        ASSERT_EQ(ompx_put_signal(left, nullptr, nullptr, 0, reply.get(), round, OMPX_SIGNAL_SET),
                  0);
        ASSERT_EQ(diomp::signal_wait(reply.get(), OMPX_CMP_GE, round), round);
    }
}

/// Words of one type, with values at the ends of its range: a comparison of the wrong width or sign
/// gives another order.
template <typename T>
class integers : public testing::Test {};
using all_integers = testing::Types<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t,
                                    std::int32_t, std::uint32_t, std::int64_t, std::uint64_t>;
TYPED_TEST_SUITE(integers, all_integers);

TYPED_TEST(integers, every_comparison_agrees_with_the_language) {
    using T = TypeParam;
    constexpr std::array values{std::numeric_limits<T>::min(),
                                T{0},
                                T{1},
                                T{2},
                                static_cast<T>(std::numeric_limits<T>::max() - 1),
                                std::numeric_limits<T>::max()};
    // Neighbours of other values: a read of more than the word would see them.
    std::array<T, 3> cells{static_cast<T>(-1), T{0}, static_cast<T>(-1)};
    for (T const a : values) {
        cells[1] = a;
        for (T const b : values) {
            EXPECT_EQ(diomp::test_until(&cells[1], OMPX_CMP_EQ, b), a == b);
            EXPECT_EQ(diomp::test_until(&cells[1], OMPX_CMP_NE, b), a != b);
            EXPECT_EQ(diomp::test_until(&cells[1], OMPX_CMP_GT, b), a > b);
            EXPECT_EQ(diomp::test_until(&cells[1], OMPX_CMP_GE, b), a >= b);
            EXPECT_EQ(diomp::test_until(&cells[1], OMPX_CMP_LT, b), a < b);
            EXPECT_EQ(diomp::test_until(&cells[1], OMPX_CMP_LE, b), a <= b);
        }
    }
}

TYPED_TEST(integers, a_put_of_a_word_ends_waits) {
    using T = TypeParam;
    words<T> const cells(static_cast<std::size_t>(ranks) + 1);
    for (int round = 1; round <= 10; ++round) {
        auto const value = static_cast<T>(round);
        for (int to = 0; to < ranks; ++to) {
            ASSERT_EQ(ompx_put(to, cells.get() + me, &value, sizeof(value)), 0);
        }
        ASSERT_EQ(ompx_fence(), 0);
        auto const of_ranks = cells.all().first(static_cast<std::size_t>(ranks));
        EXPECT_EQ(diomp::wait_until(&of_ranks[0], OMPX_CMP_EQ, value), value);
        diomp::wait_until_all(of_ranks, OMPX_CMP_GE, value);
        EXPECT_TRUE(diomp::test_until_all(of_ranks, OMPX_CMP_EQ, value));
        EXPECT_EQ(diomp::wait_until_any(of_ranks, OMPX_CMP_EQ, value),
                  std::optional<std::size_t>(0));
        EXPECT_EQ(diomp::wait_until_some(of_ranks, OMPX_CMP_EQ, value).size(), of_ranks.size());
        EXPECT_EQ(cells.all().back(), T{0}) << "the word after the last one";
        ASSERT_EQ(ompx_barrier(), 0);
    }
}

TYPED_TEST(integers, each_word_can_have_a_value_of_its_own) {
    using T = TypeParam;
    constexpr ompx_type_t type = diomp::type_v<T>;
    std::array<T, 4> const cells{5, 6, 7, 8};
    std::array<T, 4> const values{5, 0, 7, 1};
    std::array<std::size_t, 4> indices{};
    std::size_t num_found = 0;
    ASSERT_EQ(ompx_wait_until_some(cells.data(), type, 4, nullptr, OMPX_CMP_EQ, values.data(), 4,
                                   indices.data(), &num_found),
              0);
    ASSERT_EQ(num_found, 2U);
    EXPECT_EQ(indices[0], 0U);
    EXPECT_EQ(indices[1], 2U);
    EXPECT_EQ(ompx_test_until_all(cells.data(), type, 4, nullptr, OMPX_CMP_EQ, values.data(), 4),
              0);
    EXPECT_EQ(ompx_wait_until_all(cells.data(), type, 4, nullptr, OMPX_CMP_GE, values.data(), 4),
              0);
    std::array<int, 4> const skip{0, 1, 0, 1};
    EXPECT_EQ(
        ompx_test_until_all(cells.data(), type, 4, skip.data(), OMPX_CMP_EQ, values.data(), 4), 1);
    EXPECT_EQ(diomp::test_until_any(cells, OMPX_CMP_EQ, T{8}), std::optional<std::size_t>(3));
    EXPECT_EQ(diomp::test_until_any(cells, OMPX_CMP_EQ, T{8}, skip), std::nullopt);
    EXPECT_EQ(diomp::test_until_some(cells, OMPX_CMP_GT, T{5}, skip), std::vector<std::size_t>{2});
}

TEST(waits, nothing_to_wait_for_returns_at_once) {
    std::uint64_t const word = 0;
    int const skip = 1;
    std::size_t index = 0;
    std::size_t num_found = 1;
    EXPECT_EQ(ompx_signal_wait_any(nullptr, 0, nullptr, OMPX_CMP_EQ, 1, &index), 0);
    EXPECT_EQ(index, OMPX_NO_INDEX);
    EXPECT_EQ(ompx_signal_wait_some(&word, 1, &skip, OMPX_CMP_EQ, 1, &index, &num_found), 0);
    EXPECT_EQ(num_found, 0U);
    EXPECT_EQ(ompx_signal_wait_all(&word, 1, &skip, OMPX_CMP_EQ, 1), 0);
    EXPECT_EQ(ompx_signal_test_any(&word, 1, &skip, OMPX_CMP_EQ, 0, &index), 0);
    EXPECT_EQ(ompx_signal_test_all(nullptr, 0, nullptr, OMPX_CMP_EQ, 1), 1);
}

TEST(waits, misuse_is_an_error) {
    std::array<std::uint64_t, 2> const words{};
    std::size_t index = 0;
    std::uint64_t value = 0;
    auto const *const odd =
        reinterpret_cast<const std::uint64_t *>(reinterpret_cast<const char *>(words.data()) + 1);
    EXPECT_EQ(ompx_signal_test(nullptr, OMPX_CMP_EQ, 0), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_signal_test(odd, OMPX_CMP_EQ, 0), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_signal_test(words.data(), static_cast<ompx_cmp_t>(6), 0), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_signal_wait_any(nullptr, 2, nullptr, OMPX_CMP_EQ, 0, &index), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_signal_wait_any(words.data(), 2, nullptr, OMPX_CMP_EQ, 0, nullptr),
              OMPX_ERR_ARG);
    EXPECT_EQ(ompx_signal_wait_some(words.data(), 2, nullptr, OMPX_CMP_EQ, 0, &index, nullptr),
              OMPX_ERR_ARG);
    EXPECT_EQ(ompx_test_until(words.data(), OMPX_DOUBLE, OMPX_CMP_EQ, &value), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_wait_until_all(words.data(), OMPX_UINT64, 2, nullptr, OMPX_CMP_EQ, &value, 3),
              OMPX_ERR_ARG);
    EXPECT_EQ(ompx_wait_until_fetch(words.data(), OMPX_UINT64, OMPX_CMP_EQ, nullptr, &value),
              OMPX_ERR_ARG);
}

} // namespace
