// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the C++ types promise at compile time, and what needs no runtime.
#include "diomp.hpp"

#include <gtest/gtest.h>

#include <array>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

static_assert(diomp::type_v<char> == (std::is_signed_v<char> ? OMPX_INT8 : OMPX_UINT8));
static_assert(diomp::type_v<signed char> == OMPX_INT8);
static_assert(diomp::type_v<unsigned char> == OMPX_UINT8);
static_assert(diomp::type_v<short> == OMPX_INT16);
static_assert(diomp::type_v<char16_t> == OMPX_UINT16);
static_assert(diomp::type_v<int> == OMPX_INT32);
static_assert(diomp::type_v<unsigned> == OMPX_UINT32);
static_assert(diomp::type_v<long> == OMPX_INT64);
static_assert(diomp::type_v<long long> == OMPX_INT64);
static_assert(diomp::type_v<unsigned long long> == OMPX_UINT64);
static_assert(diomp::type_v<const float> == OMPX_FLOAT);
static_assert(diomp::type_v<double> == OMPX_DOUBLE);
static_assert(diomp::type_v<long double> == OMPX_LONG_DOUBLE);
static_assert(diomp::type_v<std::complex<float>> == OMPX_FLOAT_COMPLEX);
static_assert(diomp::type_v<std::complex<double>> == OMPX_DOUBLE_COMPLEX);
static_assert(diomp::type_v<bool> == OMPX_BOOL);

struct point {
    double x, y;
};
static_assert(diomp::transferable<point> && !diomp::reducible<point>);
static_assert(!diomp::transferable<std::string> && !diomp::reducible<std::string>);
static_assert(!diomp::reducible<int *>);

static_assert(diomp::atomic_type<int> && diomp::atomic_type<std::uint64_t> &&
              diomp::atomic_type<float> && diomp::atomic_type<double>);
static_assert(!diomp::atomic_type<short> && !diomp::atomic_type<bool> &&
              !diomp::atomic_type<const int> && !diomp::atomic_type<long double> &&
              !diomp::atomic_type<std::complex<float>>);

// Pointers travel as bytes; owners move and do not copy.
static_assert(std::is_trivially_copyable_v<diomp::global_ptr<point>>);
static_assert(diomp::transferable<diomp::global_ptr<int>>);
static_assert(std::totally_ordered<diomp::global_ptr<int>>);
static_assert(std::convertible_to<diomp::global_ptr<int>, diomp::global_ptr<const int>>);
static_assert(!std::convertible_to<diomp::global_ptr<const int>, diomp::global_ptr<int>>);
static_assert(!std::convertible_to<diomp::global_ptr<const int>, diomp::global_ptr<const long>>);
template <typename T>
concept move_only = std::movable<T> && !std::copy_constructible<T>;
static_assert(move_only<diomp::symmetric_array<int>> && move_only<diomp::group> &&
              move_only<diomp::event> && move_only<diomp::owner<int>>);
static_assert(std::is_nothrow_move_constructible_v<diomp::symmetric_array<int>>);
static_assert(std::is_nothrow_move_constructible_v<diomp::event>);

// const data can be read and not written.
template <typename P>
concept puttable = requires(P p, int value) { p.put(value); };
static_assert(puttable<diomp::global_ptr<int>> && !puttable<diomp::global_ptr<const int>>);
template <typename P, typename R>
concept gettable_into = requires(P p, R into) { p.get(into); };
static_assert(gettable_into<diomp::global_ptr<const int>, std::vector<int> &>);
static_assert(!gettable_into<diomp::global_ptr<const int>, const std::vector<int> &>);
static_assert(!gettable_into<diomp::global_ptr<const int>, std::vector<long> &>);

static_assert(std::same_as<decltype(std::declval<const diomp::symmetric_array<int> &>().at(0)),
                           diomp::global_ptr<const int>>);

static_assert(diomp::operator_on<diomp::op, double> && !diomp::operator_on<diomp::op, point>);
static_assert(diomp::operator_on<diomp::user_op<point>, point> &&
              !diomp::operator_on<diomp::user_op<point>, double>);

static_assert(std::allocator_traits<diomp::symmetric_allocator<int>>::is_always_equal::value);
static_assert(std::same_as<std::allocator_traits<diomp::local_allocator<int>>::rebind_alloc<double>,
                           diomp::local_allocator<double>>);
static_assert(std::same_as<decltype(diomp::lock_guard(0)), diomp::lock_guard<diomp::rank_mutex>>);

TEST(cpp_global_ptr, is_null_until_it_is_given_a_place) {
    const diomp::global_ptr<int> null;
    EXPECT_FALSE(null);
    EXPECT_EQ(null, diomp::global_ptr<int>(nullptr));
    EXPECT_EQ(null.local(), nullptr);
    EXPECT_FALSE(null.is_local());
    int value = 0;
    EXPECT_TRUE(diomp::at(0, &value));
}

TEST(cpp_global_ptr, counts_in_elements) {
    std::array<int, 8> values{};
    auto p = diomp::at(3, values.data());
    EXPECT_EQ((p + 2).address(), &values[2]);
    EXPECT_EQ((2 + p).address(), &values[2]);
    EXPECT_EQ((p + 5) - (p + 2), 3);
    EXPECT_EQ((p + 5 - 2).address(), &values[3]);
    EXPECT_EQ((p++).address(), &values[0]);
    EXPECT_EQ((++p).address(), &values[2]);
    EXPECT_EQ((p--).address(), &values[2]);
    EXPECT_EQ((--p).address(), &values[0]);
    EXPECT_EQ((&p[4]).address(), &values[4]);
    EXPECT_EQ((p += 1).rank(), 3);
    EXPECT_EQ((p -= 1).address(), &values[0]);
}

TEST(cpp_global_ptr, orders_by_rank_and_then_by_address) {
    std::array<int, 2> values{};
    const diomp::global_ptr<int> low(0, &values[1]);
    const diomp::global_ptr<int> high(1, &values[0]);
    EXPECT_LT(low, high);
    EXPECT_LT(high, high + 1);
    EXPECT_EQ(high, diomp::at(1, values.data()));
    EXPECT_NE(low, high);
}

TEST(cpp_error, carries_status_and_text) {
    try {
        diomp::detail::fail(OMPX_ERR_RANGE, "elements 3 to 5");
        FAIL();
    } catch (const diomp::error &failure) {
        EXPECT_EQ(failure.status(), OMPX_ERR_RANGE);
        EXPECT_STREQ(failure.what(), "elements 3 to 5");
    }
    EXPECT_EQ(diomp::detail::check(7), 7);
}

TEST(cpp_allocator, refuses_a_count_that_overflows) {
    diomp::local_allocator<double> allocator;
    try {
        static_cast<void>(allocator.allocate(SIZE_MAX / 4));
        FAIL();
    } catch (const diomp::error &failure) {
        EXPECT_EQ(failure.status(), OMPX_ERR_ARG);
    }
}

} // namespace
