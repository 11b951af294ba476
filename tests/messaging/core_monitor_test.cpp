// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What waits learn from their yields, on a core that the test plays.
#include "messaging/internal/core_monitor.h"

#include <gtest/gtest.h>

namespace {

using namespace diomp::messaging;
using namespace std::chrono_literals;
using nanoseconds = std::chrono::nanoseconds;

/// The one core. A core_access takes plain functions, so it is a global.
struct scripted_core {
    core_access::clock::time_point now{1h};
    nanoseconds yield_lasts{200};
    bool others_run = false; ///< during a yield
    long num_yields = 0;
    long num_switches = 0;
    long num_counts = 0;
} g_core;

core_access scripted() {
    g_core = {};
    core_access made;
    made.now = [] { return g_core.now; };
    made.yield = [] {
        ++g_core.num_yields;
        g_core.now += g_core.yield_lasts;
        g_core.num_switches += g_core.others_run ? 1 : 0;
    };
    made.count_switches = [] {
        ++g_core.num_counts;
        return g_core.num_switches;
    };
    return made;
}

constexpr int most = 2000;

TEST(core_monitor, polls_as_long_as_no_other_thread_runs_in_its_yields) {
    core_monitor monitor(most, false, scripted());
    for (int wait = 0; wait < 100; ++wait) {
        EXPECT_FALSE(monitor.yield(true));
    }
    EXPECT_EQ(monitor.polls(), most);
    EXPECT_FALSE(monitor.is_contended());
    EXPECT_FALSE(monitor.should_sleep());
}

// A switch there and back takes a microsecond, as does a yield without one from cold caches.
TEST(core_monitor, yields_at_once_after_a_few_waits_beside_a_rank_on_its_core) {
    core_monitor monitor(most, false, scripted());
    g_core.yield_lasts = 1us;
    g_core.others_run = true;
    for (int wait = 0; wait < 6; ++wait) {
        EXPECT_FALSE(monitor.yield(true));
    }
    EXPECT_EQ(monitor.polls(), 0);
    EXPECT_TRUE(monitor.is_contended());
    for (int wait = 0; wait < 1000; ++wait) {
        EXPECT_FALSE(monitor.yield(true));
        EXPECT_EQ(monitor.polls(), 0);
    }
}

TEST(core_monitor, asks_the_kernel_in_few_waits_that_yield_at_once) {
    core_monitor monitor(most, true, scripted());
    g_core.others_run = true;
    for (int wait = 0; wait < 160; ++wait) {
        EXPECT_FALSE(monitor.yield(true));
    }
    EXPECT_EQ(g_core.num_counts, 20) << "twice in 10 of them";
}

TEST(core_monitor, polls_again_when_the_other_rank_has_moved_away) {
    core_monitor monitor(most, false, scripted());
    g_core.others_run = true;
    for (int wait = 0; wait < 10; ++wait) {
        EXPECT_FALSE(monitor.yield(true));
    }
    ASSERT_EQ(monitor.polls(), 0);
    g_core.others_run = false;
    for (int wait = 0; wait < 16 && monitor.polls() == 0; ++wait) {
        EXPECT_FALSE(monitor.yield(true));
    }
    EXPECT_GT(monitor.polls(), 0);
    for (int wait = 0; wait < 60; ++wait) { // that now end while they poll
        monitor.note_success();
    }
    EXPECT_EQ(monitor.polls(), most);
}

TEST(core_monitor, only_the_first_yield_of_a_wait_teaches_how_long_to_poll) {
    core_monitor monitor(most, false, scripted());
    g_core.others_run = true;
    EXPECT_FALSE(monitor.yield(false));
    EXPECT_EQ(monitor.polls(), most);
    EXPECT_EQ(g_core.num_counts, 0);
}

TEST(core_monitor, sleeps_after_lost_slices_for_up_to_16_times_as_long) {
    core_monitor monitor(most, true, scripted());
    g_core.yield_lasts = 4ms;
    g_core.others_run = true;
    EXPECT_FALSE(monitor.should_sleep());
    for (int const factor : {1, 2, 4, 8, 16, 16}) {
        EXPECT_TRUE(monitor.yield(true));
        EXPECT_TRUE(monitor.should_sleep());
        g_core.now += factor * 4ms - 1ms;
        EXPECT_TRUE(monitor.should_sleep()) << factor;
        g_core.now += 1ms;
        EXPECT_FALSE(monitor.should_sleep()) << "one wait tries a yield again";
    }
}

// Ranks that start or compute for a moment are no busy program.
TEST(core_monitor, sleeps_briefly_after_a_slice_that_follows_cheap_yields) {
    core_monitor monitor(most, true, scripted());
    g_core.yield_lasts = 4ms;
    for (int const factor : {1, 2, 4}) {
        EXPECT_TRUE(monitor.yield(true));
        g_core.now += factor * 4ms;
    }
    g_core.yield_lasts = 200ns;
    for (int yield = 0; yield < 20; ++yield) {
        EXPECT_FALSE(monitor.yield(true));
    }
    g_core.yield_lasts = 4ms;
    EXPECT_TRUE(monitor.yield(true));
    g_core.now += 4ms;
    EXPECT_FALSE(monitor.should_sleep());
}

// Of a program in another control group, which the yield does not prefer: its turn comes anyway.
TEST(core_monitor, goes_on_yielding_where_few_yields_take_a_slice) {
    core_monitor monitor(most, true, scripted());
    for (int slice = 0; slice < 10; ++slice) {
        g_core.yield_lasts = 2us;
        for (int yield = 0; yield < 250; ++yield) {
            EXPECT_FALSE(monitor.yield(false));
        }
        g_core.yield_lasts = 4ms;
        EXPECT_FALSE(monitor.yield(false));
        EXPECT_FALSE(monitor.should_sleep());
    }
    g_core.yield_lasts = 2us;
    for (int yield = 0; yield < 150; ++yield) {
        EXPECT_FALSE(monitor.yield(false));
    }
    g_core.yield_lasts = 4ms;
    EXPECT_TRUE(monitor.yield(false)) << "150 sleeps had cost 3 ms";
}

TEST(core_monitor, a_part_of_a_slice_is_enough_to_go_on_sleeping) {
    core_monitor monitor(most, false, scripted());
    g_core.yield_lasts = 500us;
    EXPECT_FALSE(monitor.yield(true)) << "a rank with its own part of a call to do";
    g_core.yield_lasts = 4ms;
    EXPECT_TRUE(monitor.yield(true));
    g_core.now += 1s;
    g_core.yield_lasts = 500us;
    EXPECT_TRUE(monitor.yield(true));
    EXPECT_TRUE(monitor.should_sleep());
}

TEST(core_monitor, yields_again_when_the_other_program_has_gone) {
    core_monitor monitor(most, true, scripted());
    g_core.yield_lasts = 4ms;
    EXPECT_TRUE(monitor.yield(true));
    g_core.now += 64ms;
    g_core.yield_lasts = 200ns;
    EXPECT_FALSE(monitor.yield(true));
    EXPECT_FALSE(monitor.should_sleep());
    g_core.yield_lasts = 500us;
    EXPECT_FALSE(monitor.yield(true)) << "short ones count for nothing again";
}

TEST(core_monitor, waits_that_sleep_poll_less_before_if_that_is_in_vain) {
    core_monitor monitor(most, true, scripted());
    g_core.yield_lasts = 4ms;
    EXPECT_TRUE(monitor.yield(false));
    for (int wait = 0; wait < 60; ++wait) {
        monitor.note_success();
    }
    EXPECT_EQ(monitor.polls(), most);
    for (int wait = 0; wait < 6; ++wait) {
        EXPECT_EQ(monitor.trial_polls(), 0) << "it polls anyway";
        monitor.note_sleep();
    }
    EXPECT_EQ(monitor.polls(), 0);
    int trials = 0;
    for (int wait = 0; wait < 160; ++wait) {
        trials += monitor.trial_polls() > 0 ? 1 : 0;
        monitor.note_sleep();
    }
    EXPECT_EQ(trials, 10);
    monitor.note_success();
    EXPECT_GT(monitor.polls(), 0);
}

// Where each rank has a core, the busy thread is of another program, maybe one of low priority that
// a polling rank hardly notices, and the awaited rank runs on its own core.
TEST(core_monitor, with_a_core_for_each_rank_waits_poll_for_the_cost_of_a_sleep_before_it) {
    core_monitor monitor(most, false, scripted());
    g_core.others_run = true;
    while (monitor.polls() > 0) {
        EXPECT_FALSE(monitor.yield(true));
    }
    g_core.yield_lasts = 4ms;
    EXPECT_TRUE(monitor.yield(true));
    for (int wait = 0; wait < 100; ++wait) {
        EXPECT_GE(monitor.polls(), most / 2);
        monitor.note_sleep();
        EXPECT_EQ(monitor.polls(), most / 2);
        EXPECT_TRUE(monitor.is_contended());
        monitor.note_success();
    }
}

TEST(core_monitor, waits_of_many_threads_on_few_cores_do_not_poll_before_each_sleep) {
    core_monitor monitor(most, false, scripted());
    g_core.yield_lasts = 4ms;
    EXPECT_TRUE(monitor.yield(true));
    for (int wait = 0; wait < 24; ++wait) {
        monitor.note_sleep();
    }
    EXPECT_EQ(monitor.polls(), 0);
    g_core.now += 1s;
    EXPECT_TRUE(monitor.yield(true));
    EXPECT_EQ(monitor.polls(), 0);
    g_core.now += 16 * 4ms;
    EXPECT_FALSE(monitor.should_sleep()) << "tried again as soon as with more ranks than cores";
    for (int wait = 0; wait < 24; ++wait) { // the threads have ended
        monitor.note_success();
    }
    EXPECT_TRUE(monitor.yield(true));
    for (int wait = 0; wait < 8; ++wait) {
        monitor.note_sleep();
    }
    EXPECT_EQ(monitor.polls(), most / 2);
}

TEST(core_monitor, with_a_core_for_each_rank_yields_are_tried_again_after_16_to_256_slices) {
    core_monitor monitor(most, false, scripted());
    g_core.yield_lasts = 2ms;
    for (int const factor : {16, 32, 64, 128, 256, 256}) {
        EXPECT_TRUE(monitor.yield(true));
        g_core.now += factor * 2ms - 1ms;
        EXPECT_TRUE(monitor.should_sleep()) << factor;
        g_core.now += 1ms;
        EXPECT_FALSE(monitor.should_sleep()) << factor;
    }
}

// A machine that has been stopped, or a rank under a debugger.
TEST(core_monitor, sleeps_no_longer_than_a_second_before_it_tries_again) {
    core_monitor monitor(most, false, scripted());
    g_core.yield_lasts = 1h;
    EXPECT_TRUE(monitor.yield(true));
    g_core.now += 999ms;
    EXPECT_TRUE(monitor.should_sleep());
    g_core.now += 1ms;
    EXPECT_FALSE(monitor.should_sleep());
}

TEST(core_monitor, never_polls_where_the_user_has_said_so) {
    core_monitor monitor(0, false, scripted());
    for (int wait = 0; wait < 100; ++wait) {
        monitor.note_success();
        EXPECT_FALSE(monitor.yield(true));
        EXPECT_EQ(monitor.trial_polls(), 0);
    }
    EXPECT_EQ(monitor.polls(), 0);
    EXPECT_EQ(g_core.num_counts, 0);
}

TEST(core_monitor, the_system_counts_switches_to_threads_that_get_the_core) {
    core_access const core = core_access::of_system();
    long const before = core.count_switches();
    EXPECT_GE(before, 0);
    core.yield();
    EXPECT_GE(core.count_switches(), before);
}

} // namespace
