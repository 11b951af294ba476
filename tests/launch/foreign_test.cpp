// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "launch/internal/foreign.h"
#include "launch/singleton/launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace diomp::launch {
namespace {

using variables = std::map<std::string, std::string>;

status check(const variables &environment) {
    return reject_foreign_launcher([&environment](const char *name) {
        auto const found = environment.find(name);
        return found == environment.end() ? nullptr : found->second.c_str();
    });
}

TEST(foreign, nothing_set_is_fine) { EXPECT_TRUE(check({}).ok()); }

TEST(foreign, several_processes_of_another_launcher_are_an_error) {
    std::vector<variables> const jobs{
        {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"PMIX_RANK", "1"}},
        {{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}},
        {{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "8"}},
        {{"PMIX_RANK", "1"}},
    };
    for (const variables &job : jobs) {
        auto const checked = check(job);
        ASSERT_FALSE(checked.ok());
        EXPECT_EQ(checked.failure().code(), OMPX_ERR_UNSUPPORTED);
        EXPECT_THAT(checked.failure().message(), testing::HasSubstr(job.begin()->first + "=1"));
        EXPECT_THAT(checked.failure().remedy(), testing::HasSubstr("diomp-run"));
    }
}

TEST(foreign, a_job_of_one_process_is_a_world_of_one) {
    EXPECT_TRUE(check({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}).ok());
    EXPECT_TRUE(check({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}).ok());
}

TEST(foreign, a_build_without_gpi2_says_so_under_gaspi_run) {
    auto const checked = check({{"GASPI_RANK", "1"}, {"GASPI_NRANKS", "2"}});
    ASSERT_FALSE(checked.ok());
    EXPECT_THAT(checked.failure().message(), testing::HasSubstr("has no GPI-2"));
    EXPECT_THAT(checked.failure().remedy(), testing::HasSubstr("DIOMP_GPI2=ON"));
    EXPECT_TRUE(check({{"GASPI_RANK", "0"}, {"GASPI_NRANKS", "1"}}).ok());
}

TEST(foreign, says_how_srun_is_used) {
    auto const checked = check({{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "8"}});
    ASSERT_FALSE(checked.ok());
    EXPECT_THAT(checked.failure().remedy(), testing::HasSubstr("srun --mpi=pmix"));
    EXPECT_THAT(checked.failure().remedy(), testing::HasSubstr("srun --mpi=pmi2"));
}

TEST(foreign, several_tasks_inside_a_job_of_one_process_are_an_error) {
    EXPECT_FALSE(check({{"OMPI_COMM_WORLD_RANK", "0"},
                        {"OMPI_COMM_WORLD_SIZE", "1"},
                        {"SLURM_PROCID", "1"},
                        {"SLURM_STEP_NUM_TASKS", "4"}})
                     .ok());
}

TEST(foreign, a_batch_script_of_slurm_is_no_launch) {
    EXPECT_TRUE(check({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "16"}}).ok());
}

TEST(singleton, is_a_world_of_one_with_the_same_rules) {
    auto const alone = singleton::make();
    EXPECT_EQ(alone->info().rank, world_rank(0));
    EXPECT_EQ(alone->info().size, 1);
    EXPECT_EQ(alone->watch_fd(), -1);
    ASSERT_TRUE(alone->put("key", "old").ok());
    EXPECT_FALSE(alone->get(world_rank(0), "key").ok());
    ASSERT_TRUE(alone->fence().ok());
    ASSERT_TRUE(alone->put("key", "new").ok());
    EXPECT_EQ(alone->get(world_rank(0), "key").value(), "old");
    ASSERT_TRUE(alone->fence().ok());
    EXPECT_EQ(alone->get(world_rank(0), "key").value(), "new");
    EXPECT_FALSE(alone->get(world_rank(1), "key").ok());
    EXPECT_TRUE(alone->finalize().ok());
}

} // namespace
} // namespace diomp::launch
