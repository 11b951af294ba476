// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Puts of bytes and boxes that end with a signal, blocking and not. A rank that sees the signal
// reads the data at once, without any other synchronisation.
#include "diomp.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <tuple>
#include <vector>

namespace {

int const me = ompx_rank_num();
int const ranks = ompx_num_ranks();
int const next = (me + 1) % ranks;
int const before = (me + ranks - 1) % ranks;

std::uint64_t value_of(int from, std::size_t round, std::size_t i) {
    return static_cast<std::uint64_t>(from) * 1000003 + round * 10007 + i;
}

class bytes : public testing::TestWithParam<std::tuple<std::size_t, bool>> {};

TEST_P(bytes, are_there_when_the_signal_is) {
    auto const [words, with_event] = GetParam();
    constexpr std::size_t rounds = 20;
    auto const data = diomp::make_symmetric<std::uint64_t[]>(words + 1);
    auto const signal = diomp::make_symmetric<std::uint64_t[]>(1);
    auto const taken = diomp::make_symmetric<std::uint64_t[]>(1);
    std::vector<std::uint64_t> source(words);
    for (std::size_t round = 1; round <= rounds; ++round) {
        for (std::size_t i = 0; i < words; ++i) {
            source[i] = value_of(me, round, i);
        }
        ompx_event_t event = reinterpret_cast<ompx_event_t>(&source); // overwritten
        ASSERT_EQ(ompx_put_signal_nb(next, data.get(), source.data(), words * 8, signal.get(), 1,
                                     OMPX_SIGNAL_ADD, with_event ? &event : nullptr),
                  0);
        ASSERT_EQ(ompx_signal_wait(signal.get(), OMPX_CMP_GE, round), 0);
        for (std::size_t i = 0; i < words; ++i) {
            ASSERT_EQ(data[i], value_of(before, round, i)) << round << ' ' << i;
        }
        ASSERT_EQ(with_event ? ompx_event_wait(&event) : ompx_fence(), 0);
        // The source may be reused, and the target has been told that its data is taken.
        ASSERT_EQ(ompx_put_signal(before, nullptr, nullptr, 0, taken.get(), round, OMPX_SIGNAL_SET),
                  0);
        ASSERT_EQ(ompx_signal_wait(taken.get(), OMPX_CMP_EQ, round), 0);
    }
    EXPECT_EQ(*signal.get(), rounds);
    ASSERT_EQ(ompx_barrier(), 0);
}
INSTANTIATE_TEST_SUITE_P(sizes, bytes,
                         testing::Combine(testing::Values(0, 1, 100, 5000, 200000),
                                          testing::Bool()));

TEST(signals, registered_memory_of_another_rank_gets_data_and_signal) {
    constexpr std::size_t words = 30000;
    std::vector<std::uint64_t> target(words + 1);
    ASSERT_EQ(ompx_register(target.data(), target.size() * 8), 0);
    std::vector<std::uint64_t *> addresses(static_cast<std::size_t>(ranks));
    auto *const own = target.data();
    ASSERT_EQ(ompx_allgather(addresses.data(), &own, sizeof(own), nullptr), 0);
    auto *const there = addresses[static_cast<std::size_t>(next)];
    std::vector<std::uint64_t> source(words);
    for (std::size_t i = 0; i < words; ++i) {
        source[i] = value_of(me, 1, i);
    }
    ompx_event_t event = nullptr;
    ASSERT_EQ(ompx_put_signal_nb(next, there, source.data(), words * 8, there + words, 7,
                                 OMPX_SIGNAL_SET, &event),
              0);
    ASSERT_EQ(ompx_signal_wait(own + words, OMPX_CMP_EQ, 7), 0);
    for (std::size_t i = 0; i < words; ++i) {
        ASSERT_EQ(target[i], value_of(before, 1, i)) << i;
    }
    ASSERT_EQ(ompx_event_wait(&event), 0);
    ASSERT_EQ(ompx_barrier(), 0);
    ASSERT_EQ(ompx_unregister(target.data()), 0);
}

TEST(signals, many_outstanding_ones_all_count) {
    constexpr std::size_t count = 1500; // more than may be outstanding
    auto const counter = diomp::make_symmetric<std::uint64_t[]>(2);
    std::vector<ompx_event_t> events(count);
    std::uint64_t const word = 5;
    for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(ompx_put_signal_nb(0, counter.get() + 1, &word, 8, counter.get(), 1,
                                     OMPX_SIGNAL_ADD, i % 2 == 0 ? &events[i] : nullptr),
                  0);
    }
    ASSERT_EQ(ompx_event_wait_all(events.data(), count), 0);
    ASSERT_EQ(ompx_barrier(), 0);
    if (me == 0) {
        EXPECT_EQ(counter[0], count * static_cast<std::size_t>(ranks));
        EXPECT_EQ(counter[1], 5U);
    }
    ASSERT_EQ(ompx_barrier(), 0);
}

constexpr std::array<std::size_t, 3> dimensions{6, 40, 50};
constexpr std::size_t elements = 6 * 40 * 50;

struct box {
    std::array<std::size_t, 3> volume;
    std::array<std::size_t, 3> there;
    std::array<std::size_t, 3> here;
};

/// A column, a row (contiguous), a plane, a block, nothing.
constexpr std::array<box, 5> shapes{{{{1, 40, 1}, {2, 0, 3}, {4, 0, 49}},
                                     {{1, 1, 50}, {5, 7, 0}, {0, 39, 0}},
                                     {{6, 1, 50}, {0, 3, 0}, {0, 38, 0}},
                                     {{4, 30, 41}, {1, 10, 2}, {2, 0, 9}},
                                     {{0, 30, 41}, {1, 10, 2}, {2, 0, 9}}}};

void expect_box(const double *array, const box &at, int from, std::size_t round) {
    for (std::size_t z = 0; z < dimensions[0]; ++z) {
        for (std::size_t y = 0; y < dimensions[1]; ++y) {
            for (std::size_t x = 0; x < dimensions[2]; ++x) {
                std::array<std::size_t, 3> const here{z, y, x};
                bool inside = true;
                std::size_t source = 0;
                for (std::size_t d = 0; d < 3; ++d) {
                    inside =
                        inside && here[d] >= at.there[d] && here[d] < at.there[d] + at.volume[d];
                    source = source * dimensions[d] + here[d] - at.there[d] + at.here[d];
                }
                double const expected =
                    inside ? static_cast<double>(value_of(from, round, source)) : -1.0;
                ASSERT_EQ(array[(z * 40 + y) * 50 + x], expected) << z << ' ' << y << ' ' << x;
            }
        }
    }
}

class boxes : public testing::TestWithParam<int> {}; ///< 0: blocking, 1: with an event, 2: without

TEST_P(boxes, are_whole_when_the_signal_is_there) {
    auto const array = diomp::make_symmetric<double[]>(elements);
    auto const signal = diomp::make_symmetric<std::uint64_t[]>(1);
    std::vector<double> source(elements);
    for (std::size_t k = 0; k < shapes.size(); ++k) {
        std::fill_n(array.get(), elements, -1.0);
        for (std::size_t i = 0; i < elements; ++i) {
            source[i] = static_cast<double>(value_of(me, k, i));
        }
        ASSERT_EQ(ompx_barrier(), 0);
        const box &at = shapes[k];
        ompx_event_t event = nullptr;
        auto const with = [&](auto call, auto... last) {
            return call(next, array.get(), source.data(), sizeof(double), 3, at.volume.data(),
                        at.there.data(), at.here.data(), dimensions.data(), dimensions.data(),
                        signal.get(), 1, OMPX_SIGNAL_ADD, last...);
        };
        ASSERT_EQ(GetParam() == 0   ? with(ompx_put_rect_signal)
                  : GetParam() == 1 ? with(ompx_put_rect_signal_nb, &event)
                                    : with(ompx_put_rect_signal_nb, nullptr),
                  0);
        if (GetParam() == 0) {
            std::fill(source.begin(), source.end(), -7.0); // it may be reused
        }
        ASSERT_EQ(ompx_signal_wait(signal.get(), OMPX_CMP_EQ, k + 1), 0);
        ASSERT_NO_FATAL_FAILURE(expect_box(array.get(), at, before, k));
        ASSERT_EQ(GetParam() == 1 ? ompx_event_wait(&event) : ompx_fence(), 0);
        ASSERT_EQ(ompx_barrier(), 0);
    }
}
INSTANTIATE_TEST_SUITE_P(forms, boxes, testing::Range(0, 3));

TEST(signals, the_class_has_the_call) {
    auto const data = diomp::make_symmetric<int[]>(100);
    auto const signal = diomp::make_symmetric<std::uint64_t[]>(1);
    std::vector<int> const source(100, me + 1);
    auto event =
        diomp::at(next, data.get()).put_signal_nb(source, diomp::at(next, signal.get()), 3);
    diomp::signal_wait(signal.get(), OMPX_CMP_EQ, 3);
    EXPECT_EQ(data[99], before + 1);
    event.wait();
    EXPECT_THROW(
        static_cast<void>(
            diomp::at(next, data.get()).put_signal_nb(source, diomp::at(ranks, signal.get()), 3)),
        diomp::error);
    ASSERT_EQ(ompx_barrier(), 0);
}

TEST(signals, misuse_is_an_error_and_moves_nothing) {
    auto const data = diomp::make_symmetric<std::uint64_t[]>(2);
    std::uint64_t const word = 9;
    std::uint64_t on_stack = 0;
    ompx_event_t event = nullptr;
    auto const put = [&](int rank, void *to, std::uint64_t *signal, int op) {
        return ompx_put_signal_nb(rank, to, &word, 8, signal, 1, static_cast<ompx_signal_op_t>(op),
                                  &event);
    };
    EXPECT_EQ(put(ranks, &data[0], &data[1], 0), OMPX_ERR_RANK);
    EXPECT_EQ(put(-1, &data[0], &data[1], 0), OMPX_ERR_RANK);
    EXPECT_EQ(put(next, nullptr, &data[1], 0), OMPX_ERR_ARG);
    EXPECT_EQ(put(next, &data[0], nullptr, 0), OMPX_ERR_ARG);
    EXPECT_EQ(put(next, &data[0], &data[1], 2), OMPX_ERR_ARG);
    EXPECT_EQ(put(next, &data[0], &on_stack, 0), OMPX_ERR_ADDRESS);
    EXPECT_EQ(put(next, &on_stack, &data[1], 0), OMPX_ERR_ADDRESS);
    auto *const odd = reinterpret_cast<std::uint64_t *>(reinterpret_cast<char *>(&data[1]) + 4);
    EXPECT_EQ(put(next, &data[0], odd, 0), OMPX_ERR_ARG);
    std::array<std::size_t, 1> const one{1};
    std::array<std::size_t, 1> const none{0};
    auto const put_box = [&](int num_dims, const std::size_t *offsets, int op) {
        return ompx_put_rect_signal_nb(next, &data[0], &word, 8, num_dims, one.data(), offsets,
                                       none.data(), one.data(), one.data(), &data[1], 1,
                                       static_cast<ompx_signal_op_t>(op), &event);
    };
    EXPECT_EQ(put_box(0, none.data(), 0), OMPX_ERR_ARG);
    EXPECT_EQ(put_box(1, nullptr, 0), OMPX_ERR_ARG);
    EXPECT_EQ(put_box(1, none.data(), -1), OMPX_ERR_ARG);
    EXPECT_LT(put_box(1, one.data(), 0), 0); // past the array's end
    EXPECT_EQ(event, nullptr);
    ASSERT_EQ(ompx_barrier(), 0);
    EXPECT_EQ(data[0], 0U);
    EXPECT_EQ(data[1], 0U);
    ASSERT_EQ(ompx_barrier(), 0);
}

} // namespace
