// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "group/agreed_autotuner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace {

using diomp::autotuner;
using diomp::group::agreed_autotuner;

/// One call of two members, which must choose alike; `ns_of(member, method)`. Returns the method.
template <typename NsOf>
int call(std::array<agreed_autotuner, 2> &members, NsOf &&ns_of) {
    std::array<bool, 2> const measures{members[0].is_measuring(), members[1].is_measuring()};
    int const method = members[0].choice();
    EXPECT_EQ(members[1].choice(), method);
    EXPECT_EQ(measures[0], measures[1]);
    std::uint64_t const largest = std::max(members[0].own_ns(), members[1].own_ns());
    for (std::size_t i = 0; i < members.size(); ++i) {
        members[i].note_all(largest);
        if (measures[i]) {
            members[i].note_own(ns_of(i, method));
        }
    }
    return method;
}

TEST(agreed_autotuner, the_method_is_taken_whose_slowest_member_is_faster) {
    for (int const better : {0, 1}) {
        std::array<agreed_autotuner, 2> members{agreed_autotuner(0), agreed_autotuner(0)};
        // The first member alone would choose the other method.
        auto const ns_of = [better](std::size_t member, int method) -> std::uint64_t {
            return member == 0 ? (method == better ? 900 : 100) : (method == better ? 1000 : 2000);
        };
        for (int i = 0; i < 2 * autotuner::trial_length; ++i) {
            call(members, ns_of);
        }
        EXPECT_EQ(call(members, ns_of), better);
    }
}

TEST(agreed_autotuner, both_methods_are_tried) {
    std::array<agreed_autotuner, 2> members{agreed_autotuner(0), agreed_autotuner(0)};
    int others = 0;
    for (int i = 0; i < 2 * autotuner::trial_length; ++i) {
        others += call(members, [](std::size_t, int) -> std::uint64_t { return 100; });
    }
    EXPECT_EQ(others, autotuner::trial_length);
}

TEST(agreed_autotuner, a_time_is_published_in_the_next_call_only) {
    agreed_autotuner tuner(0);
    EXPECT_EQ(tuner.own_ns(), 0U);
    EXPECT_TRUE(tuner.is_measuring());
    tuner.note_all(0);
    tuner.note_own(7);
    EXPECT_EQ(tuner.own_ns(), 7U);
    EXPECT_FALSE(tuner.is_measuring());
    tuner.note_all(7);
    EXPECT_EQ(tuner.own_ns(), 0U);
    EXPECT_TRUE(tuner.is_measuring());
}

} // namespace
