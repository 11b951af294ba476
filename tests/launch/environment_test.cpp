// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "launch/internal/environment.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

namespace diomp::launch {
namespace {

using variables = std::map<std::string, std::string>;

environment table(const variables &values) {
    return [&values](const char *name) -> const char * {
        auto const found = values.find(name);
        return found == values.end() ? nullptr : found->second.c_str();
    };
}

const variables mpirun_rank{{"PMIX_NAMESPACE", "77"},
                            {"PMIX_RANK", "1"},
                            {"PMIX_SERVER_URI2", "77.0;tcp4://127.0.0.1:4000"},
                            {"OMPI_COMM_WORLD_RANK", "1"},
                            {"OMPI_COMM_WORLD_SIZE", "2"}};
const variables slurm_task{{"SLURM_JOB_ID", "5"},
                           {"SLURM_STEP_ID", "0"},
                           {"SLURM_PROCID", "3"},
                           {"SLURM_STEP_NUM_TASKS", "4"},
                           {"SLURM_TASK_PID", "4711"}};

/// What a program sees that a rank with this environment starts.
variables child_of(variables rank) {
    rank[joined_variable] = launch_mark(table(rank));
    return rank;
}

TEST(environment, without_a_mark_everything_is_seen) {
    auto const seen = without_inherited(table(mpirun_rank));
    EXPECT_STREQ(seen("PMIX_RANK"), "1");
    EXPECT_STREQ(seen("OMPI_COMM_WORLD_SIZE"), "2");
    EXPECT_EQ(seen("HOME"), nullptr);
}

TEST(environment, the_child_of_a_rank_sees_no_launch) {
    for (const variables &rank : {mpirun_rank, slurm_task}) {
        variables const child = child_of(rank);
        auto const seen = without_inherited(table(child));
        for (auto const &[name, value] : rank) {
            if (name != "SLURM_JOB_ID" && name != "SLURM_TASK_PID") {
                EXPECT_EQ(seen(name.c_str()), nullptr) << name;
            }
        }
    }
}

TEST(environment, a_launcher_that_the_child_starts_counts) {
    variables grandchild = child_of(mpirun_rank);
    grandchild["PMIX_SERVER_URI2"] = "77.0;tcp4://127.0.0.1:4001"; // even with the same namespace
    EXPECT_STREQ(without_inherited(table(grandchild))("PMIX_RANK"), "1");
}

TEST(environment, launches_are_told_apart_one_by_one) {
    variables in_srun = child_of(mpirun_rank);
    in_srun.insert(slurm_task.begin(), slurm_task.end());
    auto const seen = without_inherited(table(in_srun));
    EXPECT_EQ(seen("PMIX_RANK"), nullptr);
    EXPECT_EQ(seen("OMPI_COMM_WORLD_SIZE"), nullptr);
    EXPECT_STREQ(seen("SLURM_PROCID"), "3");
    EXPECT_STREQ(seen("SLURM_STEP_NUM_TASKS"), "4");
}

TEST(environment, a_process_that_has_joined_is_known_whatever_it_executes) {
    environment const own = [](const char *name) -> const char * { return std::getenv(name); };
    EXPECT_TRUE(check_is_first_program(own));
    mark_process(1, 2);
    status const again = check_is_first_program(own);
    ASSERT_FALSE(again);
    EXPECT_NE(again.failure().message().find("joined its job already, as rank 1 of 2"),
              std::string::npos);
    variables inherited{{process_variable, "1:1 1 2"}}; // another process has joined
    EXPECT_TRUE(check_is_first_program(table(inherited)));
    ::unsetenv(process_variable);
}

TEST(environment, a_rank_of_no_lasting_launch_leaves_no_mark) {
    EXPECT_EQ(launch_mark(table({})), "");
    EXPECT_EQ(launch_mark(table({{"PMI_RANK", "1"}, {"PMI_FD", "7"}})), "");
}

} // namespace
} // namespace diomp::launch
