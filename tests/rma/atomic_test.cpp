// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "diomp.h"
#include "support/sanitized.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

namespace {

int const me = ompx_rank_num();
int const ranks = ompx_num_ranks();

template <typename T>
constexpr ompx_type_t type_of = 0;
template <>
constexpr ompx_type_t type_of<std::int32_t> = OMPX_INT32;
template <>
constexpr ompx_type_t type_of<std::uint32_t> = OMPX_UINT32;
template <>
constexpr ompx_type_t type_of<std::int64_t> = OMPX_INT64;
template <>
constexpr ompx_type_t type_of<std::uint64_t> = OMPX_UINT64;
template <>
constexpr ompx_type_t type_of<float> = OMPX_FLOAT;
template <>
constexpr ompx_type_t type_of<double> = OMPX_DOUBLE;

template <typename T>
class atomic_of : public testing::Test {
protected:
    void SetUp() override {
        cell = static_cast<T *>(ompx_alloc(sizeof(T), 0, OMPX_MEM_SYMMETRIC));
        *cell = T{};
        ompx_barrier();
    }
    void TearDown() override { ompx_free(cell); }

    T fetch(int rank, T operand, ompx_op_t op) {
        T old{};
        EXPECT_EQ(ompx_atomic_fetch(rank, cell, &operand, &old, type_of<T>, op), 0);
        return old;
    }

    T *cell = nullptr;
};

using all_types =
    testing::Types<std::int32_t, std::uint32_t, std::int64_t, std::uint64_t, float, double>;
TYPED_TEST_SUITE(atomic_of, all_types);

TYPED_TEST(atomic_of, every_operator_alone) {
    using T = TypeParam;
    for (int const to : {(me + 1) % ranks, me}) { // one's own word, too
        this->fetch(to, T{10}, OMPX_REPLACE);
        EXPECT_EQ(this->fetch(to, T{5}, OMPX_SUM), T{10});
        EXPECT_EQ(this->fetch(to, T{7}, OMPX_MIN), T{15});
        EXPECT_EQ(this->fetch(to, T{7}, OMPX_MIN), T{7});
        EXPECT_EQ(this->fetch(to, T{12}, OMPX_MAX), T{7});
        EXPECT_EQ(this->fetch(to, T{3}, OMPX_MAX), T{12});
        EXPECT_EQ(this->fetch(to, T{0}, OMPX_NO_OP), T{12});
        if constexpr (std::is_integral_v<T>) {
            EXPECT_EQ(this->fetch(to, T{10}, OMPX_BAND), T{12}); // 8
            EXPECT_EQ(this->fetch(to, T{3}, OMPX_BOR), T{8});    // 11
            EXPECT_EQ(this->fetch(to, T{1}, OMPX_BXOR), T{11});  // 10
            EXPECT_EQ(this->fetch(to, T{0}, OMPX_NO_OP), T{10});
        } else {
            T operand{1};
            EXPECT_EQ(ompx_atomic_fetch(to, this->cell, &operand, nullptr, type_of<T>, OMPX_BAND),
                      OMPX_ERR_ARG);
        }
        ompx_barrier();
    }
}

/// The same bits, of zeros and NaNs, too.
template <typename T>
bool is_exactly(T found, T expected) {
    return std::memcmp(&found, &expected, sizeof(T)) == 0;
}

// IEEE 754-2019, 9.6; the NaN that is left does not depend on the order.
TYPED_TEST(atomic_of, minimum_and_maximum_of_nans_and_zeros) {
    using T = TypeParam;
    if constexpr (!std::is_integral_v<T>) {
        using limits = std::numeric_limits<T>;
        T const nan = limits::quiet_NaN();
        struct {
            T word, operand, least, greatest;
        } const cases[] = {{1, nan, nan, nan},
                           {nan, 1, nan, nan},
                           {-nan, limits::infinity(), nan, nan},
                           {limits::signaling_NaN(), -nan, nan, nan},
                           {T{0}, -T{0}, -T{0}, T{0}},
                           {-T{0}, T{0}, -T{0}, T{0}},
                           {-limits::infinity(), -5, -limits::infinity(), -5}};
        int const to = (me + 1) % ranks;
        for (auto const &each : cases) {
            for (ompx_op_t const op : {OMPX_MIN, OMPX_MAX}) {
                this->fetch(to, each.word, OMPX_REPLACE);
                EXPECT_TRUE(is_exactly(this->fetch(to, each.operand, op), each.word));
                T const expected = op == OMPX_MIN ? each.least : each.greatest;
                T const found = this->fetch(to, T{0}, OMPX_NO_OP);
                EXPECT_TRUE(is_exactly(found, expected))
                    << each.word << " and " << each.operand << ", operator " << op << ": " << found;
            }
            ompx_barrier();
        }
    }
}

// As each rank comes with another operand, in any order.
TYPED_TEST(atomic_of, one_nan_among_all_ranks_is_left) {
    using T = TypeParam;
    if constexpr (!std::is_integral_v<T>) {
        T const nan = std::numeric_limits<T>::quiet_NaN();
        for (int round = 0; round < 20; ++round) {
            bool const has_nan = me == round % ranks;
            this->fetch(0, has_nan ? -nan : static_cast<T>(me + 1), OMPX_MAX);
            ompx_barrier();
            EXPECT_TRUE(is_exactly(this->fetch(0, T{0}, OMPX_NO_OP), nan));
            ompx_barrier();
            if (me == 0) {
                this->fetch(0, T{0}, OMPX_REPLACE);
            }
            ompx_barrier();
        }
    }
}

TYPED_TEST(atomic_of, compare_swap_changes_only_what_it_expects) {
    using T = TypeParam;
    int const to = (me + 1) % ranks;
    T expected{1};
    T desired{2};
    T seen{};
    ASSERT_EQ(ompx_atomic_compare_swap(to, this->cell, &expected, &desired, &seen, type_of<T>), 0);
    EXPECT_EQ(seen, T{0});
    EXPECT_EQ(this->fetch(to, T{0}, OMPX_NO_OP), T{0});
    expected = T{0};
    ASSERT_EQ(ompx_atomic_compare_swap(to, this->cell, &expected, &desired, &seen, type_of<T>), 0);
    EXPECT_EQ(seen, T{0});
    EXPECT_EQ(this->fetch(to, T{0}, OMPX_NO_OP), T{2});
    ompx_barrier();
}

/// Runs body(i) on several threads of every rank at once.
template <typename Body>
void contend(int threads, int rounds, Body &&body) {
    std::vector<std::thread> team;
    for (int t = 0; t < threads; ++t) {
        team.emplace_back([&] {
            for (int i = 0; i < rounds; ++i) {
                body(i);
            }
        });
    }
    for (auto &thread : team) {
        thread.join();
    }
    ompx_barrier();
}

TYPED_TEST(atomic_of, no_update_is_lost_between_threads_and_ranks) {
    using T = TypeParam;
    constexpr int threads = 3;
    constexpr int rounds = DIOMP_SANITIZED ? 500 : 2000;
    // Small enough for a float to count exactly.
    contend(threads, rounds, [&](int) { this->fetch(0, T{1}, OMPX_SUM); });
    EXPECT_EQ(this->fetch(0, T{0}, OMPX_NO_OP), static_cast<T>(threads * rounds * ranks));
    ompx_barrier();
    // The same count through compare and swap.
    contend(threads, rounds / 4, [&](int) {
        T seen = this->fetch(0, T{0}, OMPX_NO_OP);
        for (T before{};;) {
            before = seen;
            T const next = before + T{1};
            ompx_atomic_compare_swap(0, this->cell, &before, &next, &seen, type_of<T>);
            if (std::memcmp(&seen, &before, sizeof(T)) == 0) {
                break;
            }
        }
    });
    EXPECT_EQ(this->fetch(0, T{0}, OMPX_NO_OP),
              static_cast<T>(threads * (rounds + rounds / 4) * ranks));
    ompx_barrier();
    contend(threads, rounds,
            [&](int i) { this->fetch(0, static_cast<T>(100000 + i * ranks + me), OMPX_MAX); });
    EXPECT_EQ(this->fetch(0, T{0}, OMPX_NO_OP),
              static_cast<T>(100000 + (rounds - 1) * ranks + ranks - 1));
    ompx_barrier();
}

TEST(atomic, exchanged_values_are_neither_lost_nor_doubled) {
    constexpr int rounds = 500;
    auto *cell = static_cast<std::int64_t *>(ompx_alloc(8, 0, OMPX_MEM_SYMMETRIC));
    auto *sum = static_cast<std::int64_t *>(ompx_alloc(8, 0, OMPX_MEM_SYMMETRIC));
    *cell = 0;
    *sum = 0;
    ompx_barrier();
    std::int64_t given = 0;
    std::int64_t taken = 0;
    for (int i = 0; i < rounds; ++i) {
        std::int64_t const mine = me * rounds + i + 1;
        std::int64_t old = 0;
        ASSERT_EQ(ompx_atomic_swap(0, cell, &mine, &old, OMPX_INT64), 0);
        given += mine;
        taken += old;
    }
    std::int64_t const difference = given - taken;
    ASSERT_EQ(ompx_atomic_add(0, sum, &difference, OMPX_INT64), 0);
    ompx_barrier();
    if (me == 0) {
        // What went in and was not taken out again is the last value.
        EXPECT_EQ(*sum, *cell);
    }
    ompx_free(sum);
    ompx_free(cell);
}

} // namespace
