// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/autotuner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

namespace {

using diomp::autotuner;

const int run_length = autotuner().run_length();
const int trial_length = autotuner().trial_length();

/// Uses it so often; returns how often it took way 1.
int use(autotuner &ways, int times, const std::function<double(int way)> &cost) {
    int others = 0;
    for (int i = 0; i < times; ++i) {
        int const way = ways.choice();
        others += way;
        ways.report(cost(way));
    }
    return others;
}

TEST(autotuner, the_quicker_one_is_taken_after_one_trial) {
    for (int const better : {0, 1}) {
        autotuner ways;
        use(ways, trial_length, [&](int way) { return way == better ? 1.0 : 1.2; });
        EXPECT_EQ(ways.choice(), better);
    }
}

TEST(autotuner, the_guess_is_taken_first) {
    autotuner ways(1);
    EXPECT_EQ(use(ways, run_length, [](int) { return 1.0; }), run_length);
    EXPECT_EQ(autotuner().choice(), 0);
}

TEST(autotuner, what_is_confirmed_is_tried_less_and_less_often) {
    autotuner ways;
    int const others = use(ways, 20000, [](int way) { return way == 0 ? 1.0 : 7.0; });
    EXPECT_GE(others, run_length);
    EXPECT_LE(others, 30 * run_length);
}

TEST(autotuner, what_is_much_worse_is_used_twice_and_no_more) {
    autotuner ways;
    EXPECT_EQ(use(ways, trial_length, [](int way) { return way == 0 ? 1.0 : 1.5; }), 2);
    autotuner close;
    EXPECT_EQ(use(close, trial_length, [](int way) { return way == 0 ? 1.0 : 1.1; }), run_length);
}

TEST(autotuner, it_follows_a_machine_that_changes) {
    autotuner ways;
    use(ways, 5000, [](int way) { return way == 0 ? 1.0 : 2.0; });
    EXPECT_EQ(ways.choice(), 0);
    use(ways, autotuner::max_pause + trial_length, [](int way) { return way == 0 ? 5.0 : 2.0; });
    EXPECT_EQ(ways.choice(), 1);
}

// A rank that comes late makes one call long, whichever way it went.
TEST(autotuner, one_bad_call_in_a_run_decides_nothing) {
    autotuner ways;
    int number = 0;
    use(ways, trial_length, [&](int way) {
        bool const is_disturbed = ++number == 2 || number == 1 + run_length;
        return (way == 0 ? 1.0 : 1.5) * (is_disturbed ? 100.0 : 1.0);
    });
    EXPECT_EQ(ways.choice(), 0);
}

// What the other way has left in the caches is paid by the first call after a change.
TEST(autotuner, the_first_call_of_a_run_does_not_count) {
    autotuner ways;
    int last = 0;
    use(ways, trial_length, [&](int way) {
        bool const has_changed = std::exchange(last, way) != way;
        return (way == 0 ? 1.5 : 1.0) + (has_changed ? 100.0 : 0.0);
    });
    EXPECT_EQ(ways.choice(), 1);
}

// Long copies: the shared cache holds what the other way has left, for a number of calls.
TEST(autotuner, slow_calls_after_a_change_do_not_count) {
    constexpr int num_transient = 9;
    for (int const better : {0, 1}) {
        autotuner ways(0, 2, 0, num_transient);
        EXPECT_EQ(ways.run_length(), num_transient + autotuner::num_compared);
        int last = 0;
        int since = 0;
        use(ways, ways.trial_length(), [&](int way) {
            since = std::exchange(last, way) == way ? since + 1 : 0;
            return (way == better ? 1.0 : 1.2) + (since < num_transient ? 1.0 / (1 + since) : 0.0);
        });
        EXPECT_EQ(ways.choice(), better);
    }
    autotuner hopeless(0, 2, 0, num_transient);
    EXPECT_EQ(use(hopeless, hopeless.trial_length(), [](int way) { return way == 0 ? 1.0 : 7.0; }),
              autotuner::num_tolerated);
}

/// Uses it so often; returns the way that it would take next.
int settle(autotuner &ways, int times, const std::vector<double> &costs) {
    use(ways, times, [&](int way) { return costs[static_cast<std::size_t>(way)]; });
    return ways.choice();
}

TEST(autotuner, the_quickest_of_three_is_taken_after_one_round) {
    for (std::vector<double> const &costs :
         {std::vector{1.0, 1.1, 1.2}, {1.2, 1.0, 1.1}, {1.1, 1.2, 1.0}, {1.2, 1.1, 1.0}}) {
        for (int const guess : {0, 1, 2}) {
            autotuner ways(guess, 3);
            auto const best = std::ranges::min_element(costs) - costs.begin();
            EXPECT_EQ(settle(ways, 2 * trial_length, costs), best) << "guess " << guess;
        }
    }
}

TEST(autotuner, what_cold_uses_take_is_not_compared) {
    constexpr int num_cold = 5;
    autotuner ways(1, 3, num_cold);
    EXPECT_EQ(use(ways, num_cold, [](int) { return 100.0; }), num_cold);
    EXPECT_EQ(settle(ways, 2 * trial_length, {1.2, 1.0, 1.1}), 1);
    EXPECT_EQ(ways.is_measuring(), false);
}

TEST(autotuner, a_little_better_is_not_worth_a_change) {
    autotuner ways;
    EXPECT_EQ(settle(ways, 5000, {1.02, 1.0}), 0);
    EXPECT_EQ(settle(ways, 5000, {1.04, 1.0}), 1);
}

TEST(autotuner, it_follows_a_machine_that_changes_among_three) {
    autotuner ways(0, 3);
    EXPECT_EQ(settle(ways, 5000, {1.0, 2.0, 2.0}), 0);
    int const round = autotuner::max_pause + 2 * trial_length;
    EXPECT_EQ(settle(ways, round, {5.0, 4.0, 2.0}), 2);
    EXPECT_EQ(settle(ways, round, {5.0, 1.0, 2.0}), 1);
}

TEST(autotuner, one_way_alone_needs_no_trial) {
    autotuner ways(0, 1);
    EXPECT_EQ(settle(ways, 100, {1.0}), 0);
}

} // namespace
