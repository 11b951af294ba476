// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// OMPX_MINLOC and OMPX_MAXLOC in all reductions, against a reference that searches the operands.
#include "diomp.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace {

int const me = ompx_rank_num();
int const ranks = ompx_num_ranks();

template <typename V, typename I, ompx_type_t number>
struct pairs_of {
    using value = V;
    using index = I;
    struct element {
        V value;
        I index;
    };
    static constexpr ompx_type_t type = number;
};

/// The value's place in the order of OMPX_MIN; a NaN counts as beyond the end of both operators.
template <typename V>
bool precedes(V a, V b, ompx_op_t op) {
    if constexpr (std::is_floating_point_v<V>) {
        if (std::isnan(a) || std::isnan(b)) {
            return std::isnan(a) && !std::isnan(b);
        }
        if (a == b) {
            return std::signbit(a) != std::signbit(b) && std::signbit(a) == (op == OMPX_MINLOC);
        }
    }
    return op == OMPX_MINLOC ? a < b : a > b;
}

template <typename Pairs>
class pairs : public testing::Test {
protected:
    using value = typename Pairs::value;
    using index = typename Pairs::index;
    using element = typename Pairs::element;

    /// Element i of `rank`, of few different values so that many are equal.
    static element operand(int rank, std::size_t i) {
        std::minstd_rand random(static_cast<unsigned>(rank * 7919) + static_cast<unsigned>(i) + 1);
        random.discard(3);
        auto const choice = random() % 6;
        auto number = static_cast<value>(static_cast<int>(random() % 4) - 2);
        if constexpr (std::is_floating_point_v<value>) {
            using limits = std::numeric_limits<value>;
            number = choice == 0   ? (i % 3 == 0 ? limits::quiet_NaN() : limits::infinity())
                     : choice == 1 ? -limits::infinity()
                     : choice == 2 ? value{-0.0}
                     : choice == 3 ? value{0}
                                   : number;
        } else if (choice < 2) {
            number =
                choice == 0 ? std::numeric_limits<value>::min() : std::numeric_limits<value>::max();
        }
        return {number, static_cast<index>((rank * 37 + static_cast<int>(i)) % 11 - 2)};
    }

    static element expected(int first, int last, std::size_t i, ompx_op_t op) {
        element found = operand(first, i);
        for (int rank = first + 1; rank <= last; ++rank) {
            element const each = operand(rank, i);
            if (precedes(each.value, found.value, op) ||
                (!precedes(found.value, each.value, op) && each.index < found.index)) {
                found = each;
            }
        }
        return found;
    }

    static void expect_equal(const element &found, const element &wanted, std::size_t i) {
        if constexpr (std::is_floating_point_v<value>) {
            ASSERT_EQ(std::isnan(found.value), std::isnan(wanted.value)) << i;
            if (!std::isnan(wanted.value)) {
                ASSERT_EQ(std::signbit(found.value), std::signbit(wanted.value)) << i;
            }
        }
        if (wanted.value == wanted.value) { // not a NaN
            ASSERT_EQ(found.value, wanted.value) << i;
        }
        ASSERT_EQ(found.index, wanted.index) << i;
    }

    static std::vector<element> operands(std::size_t count) {
        std::vector<element> all(count);
        for (std::size_t i = 0; i < count; ++i) {
            all[i] = operand(me, i);
        }
        return all;
    }

    static void expect_all(const std::vector<element> &found, int first, int last, ompx_op_t op,
                           std::size_t offset = 0) {
        for (std::size_t i = 0; i < found.size(); ++i) {
            ASSERT_NO_FATAL_FAILURE(
                expect_equal(found[i], expected(first, last, offset + i, op), i));
        }
    }
};

using all_pairs = testing::Types<
    pairs_of<float, std::int32_t, OMPX_FLOAT_INT>, pairs_of<double, std::int32_t, OMPX_DOUBLE_INT>,
    pairs_of<std::int64_t, std::int32_t, OMPX_LONG_INT>,
    pairs_of<std::int32_t, std::int32_t, OMPX_2INT>,
    pairs_of<std::int16_t, std::int32_t, OMPX_SHORT_INT>,
    pairs_of<long double, std::int32_t, OMPX_LONG_DOUBLE_INT>, pairs_of<float, float, OMPX_2FLOAT>,
    pairs_of<double, double, OMPX_2DOUBLE>, pairs_of<std::int64_t, std::int64_t, OMPX_2INT64>,
    pairs_of<double, std::int64_t, OMPX_DOUBLE_INT64>>;
TYPED_TEST_SUITE(pairs, all_pairs);

TYPED_TEST(pairs, have_the_size_of_their_type) {
    EXPECT_EQ(ompx_type_size(TypeParam::type), sizeof(typename TypeParam::element));
}

TYPED_TEST(pairs, reductions_find_the_lowest_index_of_the_extreme) {
    using element = typename TypeParam::element;
    for (ompx_op_t const op : {OMPX_MINLOC, OMPX_MAXLOC}) {
        for (std::size_t const count : {1UL, 3UL, 50UL, 20000UL}) {
            auto const src = this->operands(count);
            std::vector<element> dst(count);
            ASSERT_EQ(ompx_allreduce(dst.data(), src.data(), count, TypeParam::type, op, nullptr),
                      0);
            ASSERT_NO_FATAL_FAILURE(this->expect_all(dst, 0, ranks - 1, op));
            int const root = ranks - 1;
            auto in_place = src;
            ASSERT_EQ(ompx_reduce(in_place.data(), in_place.data(), count, TypeParam::type, op,
                                  root, nullptr),
                      0);
            if (me == root) {
                ASSERT_NO_FATAL_FAILURE(this->expect_all(in_place, 0, ranks - 1, op));
            }
            ASSERT_EQ(ompx_scan(dst.data(), src.data(), count, TypeParam::type, op, nullptr), 0);
            ASSERT_NO_FATAL_FAILURE(this->expect_all(dst, 0, me, op));
            dst.assign(count, {1, 99});
            ASSERT_EQ(ompx_exscan(dst.data(), src.data(), count, TypeParam::type, op, nullptr), 0);
            if (me > 0) {
                ASSERT_NO_FATAL_FAILURE(this->expect_all(dst, 0, me - 1, op));
            } else {
                EXPECT_EQ(dst.back().index, 99);
            }
        }
    }
}

TYPED_TEST(pairs, reduce_scatter_and_calls_that_do_not_block) {
    using element = typename TypeParam::element;
    for (ompx_op_t const op : {OMPX_MINLOC, OMPX_MAXLOC}) {
        std::size_t const block = 700;
        auto const src = this->operands(block * static_cast<std::size_t>(ranks));
        std::vector<element> dst(block);
        ASSERT_EQ(ompx_reduce_scatter(dst.data(), src.data(), block, TypeParam::type, op, nullptr),
                  0);
        ASSERT_NO_FATAL_FAILURE(
            this->expect_all(dst, 0, ranks - 1, op, block * static_cast<std::size_t>(me)));
        std::vector<std::vector<element>> into(5, std::vector<element>(block));
        std::vector<ompx_event_t> events(5);
        std::size_t const n = block;
        auto const *const from = src.data();
        auto const t = TypeParam::type;
        ASSERT_EQ(ompx_allreduce_nb(into[0].data(), from, n, t, op, nullptr, &events[0]), 0);
        ASSERT_EQ(ompx_reduce_nb(into[1].data(), from, n, t, op, 0, nullptr, &events[1]), 0);
        ASSERT_EQ(ompx_scan_nb(into[2].data(), from, n, t, op, nullptr, &events[2]), 0);
        ASSERT_EQ(ompx_exscan_nb(into[3].data(), from, n, t, op, nullptr, &events[3]), 0);
        ASSERT_EQ(ompx_reduce_scatter_nb(into[4].data(), from, n, t, op, nullptr, &events[4]), 0);
        ASSERT_EQ(ompx_event_wait_all(events.data(), events.size()), 0);
        ASSERT_NO_FATAL_FAILURE(this->expect_all(into[0], 0, ranks - 1, op));
        if (me == 0) {
            ASSERT_NO_FATAL_FAILURE(this->expect_all(into[1], 0, ranks - 1, op));
        }
        ASSERT_NO_FATAL_FAILURE(this->expect_all(into[2], 0, me, op));
        if (me > 0) {
            ASSERT_NO_FATAL_FAILURE(this->expect_all(into[3], 0, me - 1, op));
        }
        ASSERT_NO_FATAL_FAILURE(
            this->expect_all(into[4], 0, ranks - 1, op, block * static_cast<std::size_t>(me)));
    }
}

TEST(minloc, in_a_group_and_by_the_class) {
    auto const parts = diomp::group::split({}, me % 2, -me);
    ompx_double_int_t const mine{std::abs(static_cast<double>(me) - 1.5), me};
    auto const least = diomp::allreduce(mine, diomp::op::minloc, parts);
    auto const greatest = diomp::allreduce(mine, diomp::op::maxloc, parts);
    int first = me % 2;
    int last = me % 2;
    for (int rank = me % 2; rank < ranks; rank += 2) {
        auto const at = [](int of) { return std::abs(static_cast<double>(of) - 1.5); };
        first = at(rank) < at(first) ? rank : first;
        last = at(rank) > at(last) ? rank : last;
    }
    EXPECT_EQ(least.index, first);
    EXPECT_EQ(greatest.index, last);
    std::vector<ompx_2int_t> list{{me, 5}, {-me, me}};
    diomp::allreduce(list, diomp::op::maxloc);
    EXPECT_EQ(list[0].value, ranks - 1);
    EXPECT_EQ(list[1].index, 0);
    ASSERT_EQ(ompx_barrier(), 0);
}

TEST(minloc, misuse_is_an_error) {
    ompx_double_int_t pair{1.0, 2};
    double number = 1.0;
    EXPECT_EQ(ompx_allreduce(&number, &number, 1, OMPX_DOUBLE, OMPX_MINLOC, nullptr), OMPX_ERR_ARG);
    EXPECT_THAT(std::string(ompx_last_error()), testing::HasSubstr("OMPX_MINLOC has no meaning"));
    for (ompx_op_t const op : {OMPX_SUM, OMPX_MIN, OMPX_BOR, OMPX_AVG}) {
        EXPECT_EQ(ompx_allreduce(&pair, &pair, 1, OMPX_DOUBLE_INT, op, nullptr), OMPX_ERR_ARG);
        EXPECT_THAT(std::string(ompx_last_error()), testing::HasSubstr("OMPX_DOUBLE_INT"));
    }
    EXPECT_EQ(ompx_allreduce(&pair, &pair, 1, 27, OMPX_MAXLOC, nullptr), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_allreduce(&pair, &pair, 1, OMPX_DOUBLE_INT, 15, nullptr), OMPX_ERR_ARG);
    auto const word = diomp::make_symmetric<std::int64_t[]>(2);
    EXPECT_EQ(ompx_atomic_fetch(0, word.get(), &pair, nullptr, OMPX_INT64, OMPX_MINLOC),
              OMPX_ERR_ARG);
    EXPECT_EQ(ompx_atomic_fetch(0, word.get(), &pair, nullptr, OMPX_2INT, OMPX_SUM), OMPX_ERR_ARG);
    if (ranks > 1) {
        EXPECT_EQ(ompx_allreduce(&pair, &pair, 1, OMPX_DOUBLE_INT,
                                 me == 0 ? OMPX_MINLOC : OMPX_MAXLOC, nullptr),
                  OMPX_ERR_MISMATCH);
        EXPECT_THAT(std::string(ompx_last_error()),
                    testing::HasSubstr("type=OMPX_DOUBLE_INT, op=OMPX_MAXLOC"));
    }
    ASSERT_EQ(ompx_barrier(), 0);
}

} // namespace
