// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/two_ways.h"

#include <gtest/gtest.h>

#include <functional>
#include <utility>

namespace {

using diomp::two_ways;

/// Uses it so often; returns how often it took way 1.
int use(two_ways &ways, int times, const std::function<double(int way)> &cost) {
    int others = 0;
    for (int i = 0; i < times; ++i) {
        int const way = ways.choice();
        others += way;
        ways.tell(cost(way));
    }
    return others;
}

TEST(two_ways, the_quicker_one_is_taken_after_one_trial) {
    for (int const better : {0, 1}) {
        two_ways ways;
        use(ways, two_ways::trial_length, [&](int way) { return way == better ? 1.0 : 1.2; });
        EXPECT_EQ(ways.choice(), better);
    }
}

TEST(two_ways, the_guess_is_taken_first) {
    two_ways ways(1);
    EXPECT_EQ(use(ways, two_ways::run_length, [](int) { return 1.0; }), two_ways::run_length);
    EXPECT_EQ(two_ways().choice(), 0);
}

TEST(two_ways, what_is_confirmed_is_tried_less_and_less_often) {
    two_ways ways;
    int const others = use(ways, 20000, [](int way) { return way == 0 ? 1.0 : 7.0; });
    EXPECT_GE(others, two_ways::run_length);
    EXPECT_LE(others, 30 * two_ways::run_length);
}

TEST(two_ways, what_is_much_worse_is_used_twice_and_no_more) {
    two_ways ways;
    EXPECT_EQ(use(ways, two_ways::trial_length, [](int way) { return way == 0 ? 1.0 : 1.5; }), 2);
    two_ways close;
    EXPECT_EQ(use(close, two_ways::trial_length, [](int way) { return way == 0 ? 1.0 : 1.2; }),
              two_ways::run_length);
}

TEST(two_ways, it_follows_a_machine_that_changes) {
    two_ways ways;
    use(ways, 5000, [](int way) { return way == 0 ? 1.0 : 2.0; });
    EXPECT_EQ(ways.choice(), 0);
    use(ways, two_ways::longest_pause + two_ways::trial_length,
        [](int way) { return way == 0 ? 5.0 : 2.0; });
    EXPECT_EQ(ways.choice(), 1);
}

// A rank that comes late makes one call long, whichever way it went.
TEST(two_ways, one_bad_call_in_a_run_decides_nothing) {
    two_ways ways;
    int number = 0;
    use(ways, two_ways::trial_length, [&](int way) {
        bool const is_disturbed = ++number == 2 || number == 1 + two_ways::run_length;
        return (way == 0 ? 1.0 : 1.5) * (is_disturbed ? 100.0 : 1.0);
    });
    EXPECT_EQ(ways.choice(), 0);
}

// What the other way has left in the caches is paid by the first call after a change.
TEST(two_ways, the_first_call_of_a_run_does_not_count) {
    two_ways ways;
    int last = 0;
    use(ways, two_ways::trial_length, [&](int way) {
        bool const has_changed = std::exchange(last, way) != way;
        return (way == 0 ? 1.5 : 1.0) + (has_changed ? 100.0 : 0.0);
    });
    EXPECT_EQ(ways.choice(), 1);
}

} // namespace
