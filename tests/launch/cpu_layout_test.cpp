// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "core/cpu_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace diomp::run {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<cpu_list> single_cpu_cores(int count) {
    std::vector<cpu_list> cores;
    for (int cpu = 0; cpu < count; ++cpu) {
        cores.push_back({cpu});
    }
    return cores;
}

TEST(cpu_list, reads_and_writes_the_kernels_notation) {
    EXPECT_THAT(parse_cpu_list("0-3,8"), ElementsAre(0, 1, 2, 3, 8));
    EXPECT_THAT(parse_cpu_list("5"), ElementsAre(5));
    EXPECT_THAT(parse_cpu_list("x,2"), ElementsAre(2));
    EXPECT_THAT(parse_cpu_list(""), IsEmpty());
    EXPECT_EQ(format_cpu_list({0, 1, 2, 3, 8}), "0-3,8");
    EXPECT_EQ(format_cpu_list({}), "");
}

TEST(group_by_core, keeps_hardware_threads_of_a_core_together) {
    auto const siblings = [](int cpu) { return cpu % 2 == 0 ? "0,2" : "1,3"; };
    EXPECT_THAT(group_by_core({0, 1, 2, 3}, siblings),
                ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3)));
}

TEST(group_by_core, leaves_out_what_is_not_allowed) {
    auto const siblings = [](int) { return "0-3"; };
    EXPECT_THAT(group_by_core({1, 3}, siblings), ElementsAre(ElementsAre(1, 3)));
}

TEST(group_by_core, without_topology_each_cpu_is_a_core) {
    auto const siblings = [](int) { return ""; };
    EXPECT_THAT(group_by_core({4, 5}, siblings), ElementsAre(ElementsAre(4), ElementsAre(5)));
}

TEST(assign_cores, shares_cores_out_without_overlap) {
    auto const placed = assign_cores(3, binding::automatic, single_cpu_cores(8));
    ASSERT_TRUE(placed.ok());
    EXPECT_THAT(placed.value(),
                ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3, 4), ElementsAre(5, 6, 7)));
}

TEST(assign_cores, more_ranks_than_cores_are_unbound) {
    auto const placed = assign_cores(3, binding::automatic, single_cpu_cores(2));
    ASSERT_TRUE(placed.ok());
    EXPECT_THAT(placed.value(), ElementsAre(IsEmpty(), IsEmpty(), IsEmpty()));
}

TEST(assign_cores, asking_for_too_many_cores_is_an_error_with_both_numbers) {
    auto const placed = assign_cores(3, binding::core, single_cpu_cores(2));
    ASSERT_FALSE(placed.ok());
    EXPECT_THAT(placed.failure().message(),
                testing::AllOf(testing::HasSubstr("3 ranks"), testing::HasSubstr("2 cores")));
}

TEST(assign_cores, none_is_none) {
    auto const placed = assign_cores(1, binding::none, single_cpu_cores(2));
    ASSERT_TRUE(placed.ok());
    EXPECT_THAT(placed.value(), ElementsAre(IsEmpty()));
}

} // namespace
} // namespace diomp::run
