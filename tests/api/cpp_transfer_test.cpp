// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// global_ptr, events and atomics between ranks.
#include "diomp.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace {

int right() { return (diomp::this_rank() + 1) % diomp::num_ranks(); }
int left() { return (diomp::this_rank() + diomp::num_ranks() - 1) % diomp::num_ranks(); }

/// Unique to sender, receiver and position.
std::vector<int> pattern(int from, int to, std::size_t count) {
    std::vector<int> values(count);
    std::iota(values.begin(), values.end(), from * 100'000'000 + to * 1'000'000);
    return values;
}

struct no_default {
    explicit no_default(int given) : value(given) {}
    int value;
};

TEST(cpp_transfer, values_and_ranges_reach_the_neighbour) {
    diomp::symmetric_array<int> inbox(100);
    const auto there = diomp::at(right(), inbox.data());
    there.put(pattern(diomp::this_rank(), right(), 50));
    (there + 60).put(diomp::this_rank() + 1000);
    diomp::barrier();
    const auto expected = pattern(left(), diomp::this_rank(), 50);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), inbox.begin()));
    EXPECT_EQ(inbox[50], 0);
    EXPECT_EQ(inbox[60], left() + 1000);

    std::vector<int> fetched(50);
    there.get(fetched);
    EXPECT_EQ(fetched, pattern(diomp::this_rank(), right(), 50));
    (there + 49).get(std::span(fetched).first(1));
    EXPECT_EQ(fetched[0], fetched[49]);
    EXPECT_EQ((there + 60).get(), diomp::this_rank() + 1000);
    EXPECT_EQ(diomp::global_ptr<const int>(there + 60).get(), diomp::this_rank() + 1000);
    diomp::barrier();
}

TEST(cpp_transfer, an_empty_range_is_valid) {
    diomp::symmetric_array<int> inbox(1, 5);
    const auto there = diomp::at(right(), inbox.data());
    there.put(std::vector<int>());
    std::vector<int> nothing;
    there.get(nothing);
    diomp::barrier();
    EXPECT_EQ(inbox[0], 5);
}

TEST(cpp_transfer, references_read_and_assign) {
    diomp::symmetric_array<double> values(4, 1.5);
    const auto there = diomp::at(right(), values.data());
    *there = diomp::this_rank() + 0.25;
    diomp::fence();
    there[1] = there[0];
    diomp::barrier();
    const double fetched = there[1];
    EXPECT_EQ(fetched, diomp::this_rank() + 0.25);
    EXPECT_EQ(values[0], left() + 0.25);
    EXPECT_EQ(values[1], left() + 0.25);
    EXPECT_EQ(values[2], 1.5);
    diomp::barrier();
}

TEST(cpp_transfer, a_type_without_default_constructor_travels) {
    auto own = diomp::make_symmetric<no_default>(diomp::this_rank() * 10);
    EXPECT_EQ(diomp::at(right(), own.get()).get().value, right() * 10);
    diomp::barrier();
}

TEST(cpp_transfer, events_complete_by_waiting_testing_and_going_out_of_scope) {
    constexpr std::size_t count = 100'000;
    diomp::symmetric_array<int> inbox(count);
    const auto there = diomp::at(right(), inbox.data());
    const auto sent = pattern(diomp::this_rank(), right(), count);
    diomp::event put = there.put_nb(sent);
    put.wait();
    EXPECT_TRUE(put.test()) << "an event that was waited for is empty";
    std::vector<int> fetched(count);
    diomp::event get = there.get_nb(fetched);
    while (!get.test()) {
    }
    EXPECT_EQ(fetched, sent);
    std::vector<int> again(count);
    {
        diomp::event first = there.get_nb(again);
        const diomp::event second = std::move(first);
        EXPECT_TRUE(first.test()); // NOLINT(bugprone-use-after-move): empty is complete
    }
    EXPECT_EQ(again, sent);
    diomp::barrier();
}

TEST(cpp_transfer, who_sees_the_signal_sees_the_data) {
    diomp::symmetric_array<int> inbox(1000);
    auto signal = diomp::make_symmetric<std::uint64_t>(0u);
    const auto there = diomp::at(right(), inbox.data());
    for (std::uint64_t round = 1; round <= 20; ++round) {
        const std::vector<int> sent(1000, static_cast<int>(round));
        there.put_signal(sent, diomp::at(right(), signal.get()), 1, OMPX_SIGNAL_ADD);
        diomp::signal_wait(signal.get(), OMPX_CMP_GE, round);
        EXPECT_EQ(inbox[0], static_cast<int>(round));
        EXPECT_EQ(inbox[999], static_cast<int>(round));
        diomp::barrier();
    }
}

TEST(cpp_transfer, a_portable_pointer_means_the_same_on_every_rank) {
    auto own = diomp::make_local<int>(diomp::this_rank() + 77);
    diomp::symmetric_array<diomp::global_ptr<int>> directory(
        static_cast<std::size_t>(diomp::num_ranks()));
    const auto portable = diomp::at(diomp::this_rank(), own.get()).portable();
    for (int rank = 0; rank < diomp::num_ranks(); ++rank) {
        directory.put(rank, static_cast<std::size_t>(diomp::this_rank()), portable);
    }
    diomp::barrier();
    for (int rank = 0; rank < diomp::num_ranks(); ++rank) {
        const auto there = directory[static_cast<std::size_t>(rank)];
        EXPECT_EQ(there.rank(), rank);
        EXPECT_EQ(there.get(), rank + 77);
    }
    diomp::barrier();
}

TEST(cpp_transfer, ones_own_part_is_local) {
    diomp::symmetric_array<int> values(3, diomp::this_rank());
    const auto own = values.at(diomp::this_rank(), 1);
    ASSERT_TRUE(own.is_local());
    EXPECT_EQ(*own.local(), diomp::this_rank());
    for (int rank = 0; rank < diomp::num_ranks(); ++rank) {
        if (const int *const direct = values.at(rank, 2).local()) {
            EXPECT_EQ(*direct, rank);
        }
    }
    const int private_value = 3;
    EXPECT_FALSE(diomp::num_ranks() > 1 && diomp::at(right(), &private_value).is_local());
    diomp::barrier();
}

TEST(cpp_atomic, every_rank_counts_on_rank_0) {
    auto counter = diomp::make_symmetric<std::int64_t>(5);
    auto tickets = diomp::make_symmetric<std::int64_t>(0);
    const diomp::atomic_ref total(diomp::at(0, counter.get()));
    constexpr int rounds = 200;
    std::int64_t before = -1;
    for (int i = 0; i < rounds; ++i) {
        const std::int64_t ticket = diomp::fetch_add(diomp::at(0, tickets.get()), 1);
        EXPECT_GT(ticket, before) << "this rank got the same ticket again";
        before = ticket;
        total.fetch_add(3);
        total.add(2);
        total.fetch_sub(3);
        total.sub(1);
    }
    diomp::barrier();
    EXPECT_EQ(total.load(), 5 + diomp::num_ranks() * rounds);
    EXPECT_EQ(diomp::atomic_load(diomp::at(0, tickets.get())), diomp::num_ranks() * rounds);
    diomp::barrier();
}

TEST(cpp_atomic, bits_bounds_and_swaps) {
    auto word = diomp::make_symmetric<std::uint32_t>(0xf0u);
    const diomp::atomic_ref there(diomp::at(right(), word.get()));
    EXPECT_EQ(there.fetch_or(0x0fu), 0xf0u);
    EXPECT_EQ(there.fetch_and(0x3cu), 0xffu);
    EXPECT_EQ(there.fetch_xor(0xffu), 0x3cu);
    EXPECT_EQ(there.fetch_max(1000u), 0xc3u);
    EXPECT_EQ(there.fetch_min(7u), 1000u);
    EXPECT_EQ(there.exchange(40u), 7u);
    std::uint32_t expected = 41;
    EXPECT_FALSE(there.compare_exchange_strong(expected, 50u));
    EXPECT_EQ(expected, 40u);
    EXPECT_TRUE(there.compare_exchange_strong(expected, 50u));
    EXPECT_EQ(there.load(), 50u);
    there.store(60u);
    diomp::barrier();
    EXPECT_EQ(*word, 60u);
    diomp::barrier();
    EXPECT_EQ(there.fetch_sub(61u), 60u);
    EXPECT_EQ(there.load(), std::numeric_limits<std::uint32_t>::max());
    EXPECT_EQ(diomp::exchange(there.where(), 1u), std::numeric_limits<std::uint32_t>::max());
    EXPECT_FALSE(diomp::compare_exchange(there.where(), expected, 3u));
    EXPECT_EQ(expected, 1u);
    diomp::barrier();
}

TEST(cpp_atomic, floating_point_sums) {
    auto sum = diomp::make_symmetric<double>(0.5);
    for (int rank = 0; rank < diomp::num_ranks(); ++rank) {
        diomp::atomic_ref(diomp::at(rank, sum.get())).add(diomp::this_rank() + 1.0);
    }
    diomp::barrier();
    const double ranks = diomp::num_ranks();
    EXPECT_EQ(*sum, 0.5 + ranks * (ranks + 1) / 2);
    diomp::barrier();
}

TEST(cpp_atomic, wait_until_sees_what_another_rank_stores) {
    auto flag = diomp::make_symmetric<int>(0);
    diomp::atomic_store(diomp::at(right(), flag.get()), diomp::this_rank() + 9);
    diomp::wait_until(flag.get(), OMPX_CMP_NE, 0);
    EXPECT_EQ(diomp::atomic_load(diomp::at(diomp::this_rank(), flag.get())), left() + 9);
    diomp::barrier();
}

} // namespace
