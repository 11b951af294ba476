// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/best_way.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

namespace {

using diomp::best_way;

/// Uses it so often; returns how often it took way 1.
int use(best_way &ways, int times, const std::function<double(int way)> &cost) {
    int others = 0;
    for (int i = 0; i < times; ++i) {
        int const way = ways.choice();
        others += way;
        ways.tell(cost(way));
    }
    return others;
}

TEST(best_way, the_quicker_one_is_taken_after_one_trial) {
    for (int const better : {0, 1}) {
        best_way ways;
        use(ways, best_way::trial_length, [&](int way) { return way == better ? 1.0 : 1.2; });
        EXPECT_EQ(ways.choice(), better);
    }
}

TEST(best_way, the_guess_is_taken_first) {
    best_way ways(1);
    EXPECT_EQ(use(ways, best_way::run_length, [](int) { return 1.0; }), best_way::run_length);
    EXPECT_EQ(best_way().choice(), 0);
}

TEST(best_way, what_is_confirmed_is_tried_less_and_less_often) {
    best_way ways;
    int const others = use(ways, 20000, [](int way) { return way == 0 ? 1.0 : 7.0; });
    EXPECT_GE(others, best_way::run_length);
    EXPECT_LE(others, 30 * best_way::run_length);
}

TEST(best_way, what_is_much_worse_is_used_twice_and_no_more) {
    best_way ways;
    EXPECT_EQ(use(ways, best_way::trial_length, [](int way) { return way == 0 ? 1.0 : 1.5; }), 2);
    best_way close;
    EXPECT_EQ(use(close, best_way::trial_length, [](int way) { return way == 0 ? 1.0 : 1.1; }),
              best_way::run_length);
}

TEST(best_way, it_follows_a_machine_that_changes) {
    best_way ways;
    use(ways, 5000, [](int way) { return way == 0 ? 1.0 : 2.0; });
    EXPECT_EQ(ways.choice(), 0);
    use(ways, best_way::longest_pause + best_way::trial_length,
        [](int way) { return way == 0 ? 5.0 : 2.0; });
    EXPECT_EQ(ways.choice(), 1);
}

// A rank that comes late makes one call long, whichever way it went.
TEST(best_way, one_bad_call_in_a_run_decides_nothing) {
    best_way ways;
    int number = 0;
    use(ways, best_way::trial_length, [&](int way) {
        bool const is_disturbed = ++number == 2 || number == 1 + best_way::run_length;
        return (way == 0 ? 1.0 : 1.5) * (is_disturbed ? 100.0 : 1.0);
    });
    EXPECT_EQ(ways.choice(), 0);
}

// What the other way has left in the caches is paid by the first call after a change.
TEST(best_way, the_first_call_of_a_run_does_not_count) {
    best_way ways;
    int last = 0;
    use(ways, best_way::trial_length, [&](int way) {
        bool const has_changed = std::exchange(last, way) != way;
        return (way == 0 ? 1.5 : 1.0) + (has_changed ? 100.0 : 0.0);
    });
    EXPECT_EQ(ways.choice(), 1);
}

/// Uses it so often; returns the way that it would take next.
int settle(best_way &ways, int times, const std::vector<double> &costs) {
    use(ways, times, [&](int way) { return costs[static_cast<std::size_t>(way)]; });
    return ways.choice();
}

TEST(best_way, the_quickest_of_three_is_taken_after_one_round) {
    for (std::vector<double> const &costs :
         {std::vector{1.0, 1.1, 1.2}, {1.2, 1.0, 1.1}, {1.1, 1.2, 1.0}, {1.2, 1.1, 1.0}}) {
        for (int const guess : {0, 1, 2}) {
            best_way ways(guess, 3);
            auto const best = std::ranges::min_element(costs) - costs.begin();
            EXPECT_EQ(settle(ways, 2 * best_way::trial_length, costs), best) << "guess " << guess;
        }
    }
}

TEST(best_way, what_cold_uses_take_is_not_compared) {
    constexpr int num_cold = 5;
    best_way ways(1, 3, num_cold);
    EXPECT_EQ(use(ways, num_cold, [](int) { return 100.0; }), num_cold);
    EXPECT_EQ(settle(ways, 2 * best_way::trial_length, {1.2, 1.0, 1.1}), 1);
    EXPECT_EQ(ways.is_trying(), false);
}

TEST(best_way, a_little_better_is_not_worth_a_change) {
    best_way ways;
    EXPECT_EQ(settle(ways, 5000, {1.02, 1.0}), 0);
    EXPECT_EQ(settle(ways, 5000, {1.04, 1.0}), 1);
}

TEST(best_way, it_follows_a_machine_that_changes_among_three) {
    best_way ways(0, 3);
    EXPECT_EQ(settle(ways, 5000, {1.0, 2.0, 2.0}), 0);
    int const round = best_way::longest_pause + 2 * best_way::trial_length;
    EXPECT_EQ(settle(ways, round, {5.0, 4.0, 2.0}), 2);
    EXPECT_EQ(settle(ways, round, {5.0, 1.0, 2.0}), 1);
}

TEST(best_way, one_way_alone_needs_no_trial) {
    best_way ways(0, 1);
    EXPECT_EQ(settle(ways, 100, {1.0}), 0);
}

} // namespace
