// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Non-blocking boxes and atomics, and waits for several events.
#include "diomp.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

namespace {

int const me = ompx_rank_num();
int const ranks = ompx_num_ranks();

constexpr std::size_t rows = 40;
constexpr std::size_t columns = 50;
constexpr std::array<std::size_t, 2> volume{30, 20};
constexpr std::array<std::size_t, 2> here_offsets{3, 7};
constexpr std::array<std::size_t, 2> there_offsets{5, 11};
constexpr std::array<std::size_t, 2> dimensions{rows, columns};

double value_at(int from, int to, std::size_t row, std::size_t column) {
    return 1e6 * from + 1e4 * to + 100.0 * static_cast<double>(row) + static_cast<double>(column);
}

/// The box of `from` at its place in `array`, everything else -1.
void expect_box(const double *array, int from, int to,
                const std::array<std::size_t, 2> &source_offsets,
                const std::array<std::size_t, 2> &offsets) {
    for (std::size_t i = 0; i < rows; ++i) {
        for (std::size_t k = 0; k < columns; ++k) {
            bool const inside = i >= offsets[0] && i < offsets[0] + volume[0] && k >= offsets[1] &&
                                k < offsets[1] + volume[1];
            double const expected = inside ? value_at(from, to, i - offsets[0] + source_offsets[0],
                                                      k - offsets[1] + source_offsets[1])
                                           : -1.0;
            ASSERT_EQ(array[i * columns + k], expected) << i << ' ' << k;
        }
    }
}

std::vector<double> filled(int from, int to) {
    std::vector<double> array(rows * columns);
    for (std::size_t i = 0; i < rows; ++i) {
        for (std::size_t k = 0; k < columns; ++k) {
            array[i * columns + k] = value_at(from, to, i, k);
        }
    }
    return array;
}

class boxes : public testing::TestWithParam<bool> {};

TEST_P(boxes, arrive_after_the_event_or_the_fence) {
    int const to = (me + 1) % ranks;
    int const from = (me + ranks - 1) % ranks;
    auto const array = diomp::make_symmetric<double[]>(rows * columns);
    std::fill_n(array.get(), rows * columns, -1.0);
    ASSERT_EQ(ompx_barrier(), 0);
    auto const source = filled(me, to);
    ompx_event_t event = nullptr;
    ASSERT_EQ(ompx_put_rect_nb(to, array.get(), source.data(), sizeof(double), 2, volume.data(),
                               there_offsets.data(), here_offsets.data(), dimensions.data(),
                               dimensions.data(), GetParam() ? &event : nullptr),
              0);
    ASSERT_EQ(GetParam() ? ompx_event_wait_all(&event, 1) : ompx_fence(), 0);
    ASSERT_EQ(event, nullptr);
    ASSERT_EQ(ompx_barrier(), 0);
    expect_box(array.get(), from, me, here_offsets, there_offsets);

    auto const mine = filled(me, me);
    std::copy(mine.begin(), mine.end(), array.get());
    ASSERT_EQ(ompx_barrier(), 0);
    std::vector<double> into(rows * columns, -1.0);
    ASSERT_EQ(ompx_get_rect_nb(into.data(), to, array.get(), sizeof(double), 2, volume.data(),
                               here_offsets.data(), there_offsets.data(), dimensions.data(),
                               dimensions.data(), GetParam() ? &event : nullptr),
              0);
    ASSERT_EQ(GetParam() ? ompx_event_wait(&event) : ompx_fence(), 0);
    expect_box(into.data(), to, to, there_offsets, here_offsets);
    ASSERT_EQ(ompx_barrier(), 0);
}
INSTANTIATE_TEST_SUITE_P(with_event, boxes, testing::Bool());

TEST(nonblocking_atomics, many_in_flight_get_distinct_values) {
    constexpr std::size_t count = 1500; // more than may be outstanding
    auto const counters = diomp::make_symmetric<std::int64_t[]>(2);
    std::vector<std::int64_t> seen(count, -1);
    std::vector<ompx_event_t> events(count);
    std::int64_t const one = 1;
    for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(ompx_atomic_fetch_nb(0, counters.get(), &one, &seen[i], OMPX_INT64, OMPX_SUM,
                                       &events[i]),
                  0);
    }
    ASSERT_EQ(ompx_event_wait_all(events.data(), count), 0);
    std::set<std::int64_t> const distinct(seen.begin(), seen.end());
    EXPECT_EQ(distinct.size(), count);
    EXPECT_GE(*distinct.begin(), 0);
    EXPECT_LT(*distinct.rbegin(), static_cast<std::int64_t>(count) * ranks);
    for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(ompx_atomic_fetch_nb(0, counters.get() + 1, &one, i % 2 == 0 ? nullptr : &seen[i],
                                       OMPX_INT64, OMPX_SUM, i % 3 == 0 ? &events[i] : nullptr),
                  0);
    }
    ASSERT_EQ(ompx_event_wait_all(events.data(), count), 0);
    ASSERT_EQ(ompx_barrier(), 0);
    if (me == 0) {
        EXPECT_EQ(counters[0], static_cast<std::int64_t>(count) * ranks);
        EXPECT_EQ(counters[1], static_cast<std::int64_t>(count) * ranks);
    }
    ASSERT_EQ(ompx_barrier(), 0);
}

TEST(nonblocking_atomics, one_rank_wins_a_compare_and_swap) {
    auto const owner = diomp::make_symmetric<std::int32_t[]>(1);
    std::int32_t const free = 0;
    std::int32_t const mine = me + 1;
    std::int32_t before = -1;
    ompx_event_t event = nullptr;
    ASSERT_EQ(ompx_atomic_compare_swap_nb(ranks - 1, owner.get(), &free, &mine, &before, OMPX_INT32,
                                          &event),
              0);
    ASSERT_EQ(ompx_event_wait(&event), 0);
    ASSERT_EQ(ompx_barrier(), 0);
    std::int32_t winner = 0;
    ASSERT_EQ(ompx_get(&winner, ranks - 1, owner.get(), sizeof(winner)), 0);
    EXPECT_EQ(before == 0, winner == mine);
    EXPECT_TRUE(before == 0 || before == winner);
    ASSERT_EQ(ompx_barrier(), 0);
}

TEST(several_events, any_finds_each_transfer_once) {
    constexpr std::size_t count = 8;
    constexpr std::size_t words = 3000;
    auto const array = diomp::make_symmetric<std::uint64_t[]>(words);
    for (std::size_t k = 0; k < words; ++k) {
        array[k] = 10000 * static_cast<std::uint64_t>(me) + k;
    }
    ASSERT_EQ(ompx_barrier(), 0);
    std::vector<std::vector<std::uint64_t>> into(count, std::vector<std::uint64_t>(words));
    std::array<ompx_event_t, count> events{};
    std::array<int, count> skip{};
    for (std::size_t i = 0; i < count; ++i) {
        int const from = (me + static_cast<int>(i)) % ranks;
        ASSERT_EQ(ompx_get_nb(into[i].data(), from, array.get(), words * 8, &events[i]), 0);
    }
    for (std::size_t k = 0; k < count; ++k) {
        std::size_t index = OMPX_NO_INDEX;
        ASSERT_EQ(ompx_event_wait_any(events.data(), count, skip.data(), &index), 0);
        ASSERT_LT(index, count);
        ASSERT_EQ(skip[index], 0);
        ASSERT_EQ(events[index], nullptr);
        skip[index] = 1;
        auto const from = static_cast<std::uint64_t>((me + static_cast<int>(index)) % ranks);
        EXPECT_EQ(into[index].front(), 10000 * from);
        EXPECT_EQ(into[index].back(), 10000 * from + words - 1);
    }
    std::size_t index = 0;
    EXPECT_EQ(ompx_event_wait_any(events.data(), count, skip.data(), &index), 0);
    EXPECT_EQ(index, OMPX_NO_INDEX);
    ASSERT_EQ(ompx_barrier(), 0);
}

TEST(several_events, the_classes_wait_too) {
    auto const counter = diomp::make_symmetric<std::int64_t[]>(1);
    diomp::atomic_ref<std::int64_t> const there(diomp::at(0, counter.get()));
    std::array<std::int64_t, 6> before{};
    std::array<diomp::event, 6> events;
    for (std::size_t i = 0; i < before.size(); ++i) {
        events[i] = there.fetch_nb(1, OMPX_SUM, before[i]);
    }
    std::array<int, 6> skip{};
    for (std::size_t k = 0; k < 3; ++k) {
        auto const index = diomp::wait_any(events, skip);
        ASSERT_TRUE(index.has_value());
        ASSERT_EQ(skip[*index], 0);
        skip[*index] = 1;
    }
    diomp::wait_all(events);
    EXPECT_EQ(std::set<std::int64_t>(before.begin(), before.end()).size(), before.size());
    skip.fill(1);
    EXPECT_EQ(diomp::wait_any(events, skip), std::nullopt);
    ASSERT_EQ(ompx_barrier(), 0);
}

TEST(several_events, misuse_is_an_error) {
    ompx_event_t event = nullptr;
    std::size_t index = 0;
    EXPECT_EQ(ompx_event_wait_all(nullptr, 0), 0);
    EXPECT_EQ(ompx_event_wait_all(nullptr, 1), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_event_wait_any(&event, 1, nullptr, nullptr), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_event_wait_any(&event, 1, nullptr, &index), 0);
    EXPECT_EQ(index, 0U) << "NULL is complete";
    std::int64_t const one = 1;
    std::int64_t result = 0;
    EXPECT_EQ(ompx_atomic_fetch_nb(ranks, &result, &one, &result, OMPX_INT64, OMPX_SUM, &event),
              OMPX_ERR_RANK);
    EXPECT_EQ(ompx_atomic_fetch_nb(0, nullptr, &one, &result, OMPX_INT64, OMPX_SUM, &event),
              OMPX_ERR_ARG);
    EXPECT_EQ(ompx_put_rect_nb(0, &result, &one, 8, 0, nullptr, nullptr, nullptr, nullptr, nullptr,
                               &event),
              OMPX_ERR_ARG);
}

// The calls of diomp.hpp: the same box and the same places as above.
TEST(boxes_cpp, arrive_by_all_calls) {
    int const to = (me + 1) % ranks;
    int const from = (me + ranks - 1) % ranks;
    diomp::box<2> const where{volume, here_offsets, dimensions, there_offsets, dimensions};
    auto const mine = filled(me, to);
    auto const array = diomp::make_symmetric<double[]>(rows * columns);
    auto const signal = diomp::make_symmetric<std::uint64_t[]>(1);
    auto const there = diomp::at(to, array.get());
    auto const signal_there = diomp::at(to, signal.get());
    signal[0] = 0;
    for (int call = 0; call < 4; ++call) {
        std::fill_n(array.get(), rows * columns, -1.0);
        diomp::barrier();
        switch (call) {
        case 0:
            diomp::put_box(there, mine.data(), where);
            break;
        case 1:
            diomp::put_box_nb(there, mine.data(), where).wait();
            break;
        case 2:
            diomp::put_box_signal(there, mine.data(), where, signal_there, 1, OMPX_SIGNAL_ADD);
            EXPECT_EQ(diomp::signal_wait(signal.get(), OMPX_CMP_GE, 1), 1U);
            break;
        default:
            diomp::event sent = diomp::put_box_signal_nb(there, mine.data(), where, signal_there, 1,
                                                         OMPX_SIGNAL_ADD);
            EXPECT_EQ(diomp::signal_wait(signal.get(), OMPX_CMP_GE, 2), 2U);
            sent.wait();
        }
        diomp::barrier();
        expect_box(array.get(), from, me, here_offsets, there_offsets);
    }
    // Back: what lies there is this rank's, and comes to where it was taken from.
    std::vector<double> back(rows * columns, -1.0);
    diomp::get_box(back.data(), there, where);
    expect_box(back.data(), me, to, here_offsets, here_offsets);
    back.assign(rows * columns, -1.0);
    diomp::get_box_nb(back.data(), there, where).wait();
    expect_box(back.data(), me, to, here_offsets, here_offsets);
    if (ranks > 1) {
        EXPECT_THROW(
            diomp::put_box_signal(there, mine.data(), where, diomp::at(me, signal.get()), 1),
            diomp::error);
    }
    diomp::barrier();
}

TEST(atomics_cpp, compare_exchange_without_blocking) {
    auto const word = diomp::make_symmetric<std::int64_t[]>(1);
    word[0] = 5;
    diomp::barrier();
    diomp::atomic_ref<std::int64_t> const next(diomp::at((me + 1) % ranks, word.get()));
    std::int64_t before = -1;
    next.compare_exchange_nb(5, 7, before).wait();
    EXPECT_EQ(before, 5);
    next.compare_exchange_nb(5, 9, before).wait();
    EXPECT_EQ(before, 7) << "no exchange";
    diomp::barrier();
    EXPECT_EQ(word[0], 7);
    diomp::barrier();
}

} // namespace
