// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "group/agreed_autotuner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace {

using diomp::autotuner;
using diomp::group::agreed_autotuner;

/// Two members whose calls follow the choice, unless `follows` says otherwise.
class members {
public:
    explicit members(int preferred = 0)
        : each_{agreed_autotuner(preferred), agreed_autotuner(preferred)} {}

    /// One call; `ns_of(member, method)`. Returns the method, which both must choose.
    template <typename NsOf>
    int call(NsOf &&ns_of, bool follows = true) {
        std::array<bool, 2> const measures{each_[0].is_measuring(), each_[1].is_measuring()};
        int const method = each_[0].choice();
        EXPECT_EQ(each_[1].choice(), method);
        EXPECT_EQ(measures[0], measures[1]);
        std::uint64_t const largest = std::max(each_[0].own_ns(), each_[1].own_ns());
        for (std::size_t i = 0; i < each_.size(); ++i) {
            each_[i].note_all(largest, follows);
            if (measures[i] && follows) {
                each_[i].note_own(ns_of(i, method));
            }
        }
        return method;
    }

    /// The number of calls by method 1 among the next ones.
    template <typename NsOf>
    int count_ones(int num_calls, NsOf &&ns_of) {
        int ones = 0;
        for (int i = 0; i < num_calls; ++i) {
            ones += call(ns_of);
        }
        return ones;
    }

private:
    std::array<agreed_autotuner, 2> each_;
};

constexpr int trial_calls = agreed_autotuner::trial_calls;

auto costs(std::uint64_t of_0, std::uint64_t of_1) {
    return [=](std::size_t, int method) { return method == 0 ? of_0 : of_1; };
}

TEST(agreed_autotuner, the_method_is_taken_whose_slowest_member_is_faster) {
    for (int const better : {0, 1}) {
        members pair;
        // The first member alone would choose the other method.
        auto const ns_of = [better](std::size_t member, int method) -> std::uint64_t {
            return member == 0 ? (method == better ? 900 : 100) : (method == better ? 1000 : 2000);
        };
        pair.count_ones(trial_calls + 1, ns_of);
        EXPECT_EQ(pair.call(ns_of), better);
    }
}

TEST(agreed_autotuner, both_methods_are_tried_in_turn) {
    members pair;
    EXPECT_EQ(pair.count_ones(trial_calls, costs(100, 100)), trial_calls / 2);
    EXPECT_EQ(pair.count_ones(autotuner::min_pause - 1, costs(100, 100)), 0);
}

// A member that waits in one call for the work of several, and in the next ones for none.
TEST(agreed_autotuner, the_time_of_a_run_counts_and_not_of_its_slowest_members) {
    members pair;
    int calls = 0;
    auto const ns_of = [&calls](std::size_t member, int method) -> std::uint64_t {
        bool const waits = calls++ / 2 % 2 == static_cast<int>(member);
        return method == 0 ? (waits ? 190 : 10) : 150; // 300 for two calls, of 200
    };
    pair.count_ones(trial_calls + 1, ns_of);
    EXPECT_EQ(pair.call(ns_of), 0);
}

TEST(agreed_autotuner, one_disturbed_run_decides_nothing) {
    for (int const disturbed : {0, 1, 2, 3}) {
        members pair;
        int calls = 0;
        auto const ns_of = [&calls, disturbed](std::size_t, int method) -> std::uint64_t {
            bool const is_slow = calls++ / 2 / agreed_autotuner::run_calls == disturbed;
            return (method == 0 ? 150 : 100) + (is_slow ? 50 : 0);
        };
        pair.count_ones(trial_calls + 1, ns_of);
        EXPECT_EQ(pair.call(ns_of), 1) << "run " << disturbed;
    }
}

TEST(agreed_autotuner, a_method_that_takes_twice_the_time_is_tried_once) {
    members pair;
    EXPECT_EQ(pair.count_ones(2 * trial_calls, costs(100, 250)), agreed_autotuner::run_calls);
    members other(1);
    EXPECT_EQ(other.count_ones(2 * trial_calls, costs(250, 100)),
              2 * trial_calls - agreed_autotuner::run_calls);
}

TEST(agreed_autotuner, calls_by_another_method_are_not_part_of_a_run) {
    members pair;
    int ones = 0;
    for (int i = 0; i < 3 * trial_calls - 1; ++i) { // every third one counts
        ones += pair.call(costs(150, 100), i % 3 == 0);
    }
    EXPECT_EQ(ones, 3 * trial_calls / 2);
    EXPECT_EQ(pair.call(costs(150, 100)), 1);
}

TEST(agreed_autotuner, the_time_of_a_run_is_published_in_the_next_call_only) {
    agreed_autotuner tuner(0);
    EXPECT_FALSE(tuner.is_measuring()); // the first call of a run
    tuner.note_all(0, true);
    for (int i = 1; i < agreed_autotuner::run_calls; ++i) {
        EXPECT_TRUE(tuner.is_measuring());
        EXPECT_EQ(tuner.own_ns(), 0U);
        tuner.note_all(0, true);
        tuner.note_own(7);
    }
    EXPECT_EQ(tuner.own_ns(), 7U * (agreed_autotuner::run_calls - 1));
    EXPECT_FALSE(tuner.is_measuring());
    tuner.note_all(21, true);
    EXPECT_EQ(tuner.own_ns(), 0U);
}

} // namespace
