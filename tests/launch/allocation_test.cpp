// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "core/options.h"
#include "launch/host.h"
#include "multihost/allocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace diomp::run {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

TEST(allocation, lists_of_hosts_are_expanded) {
    auto const expand = [](std::string_view list) { return expand_slurm_hosts(list).value(); };
    EXPECT_THAT(expand("node7"), ElementsAre("node7"));
    EXPECT_THAT(expand("b,a,c-1.site"), ElementsAre("b", "a", "c-1.site"));
    EXPECT_THAT(expand("n[1-3,7]"), ElementsAre("n1", "n2", "n3", "n7"));
    EXPECT_THAT(expand("n[08-11]"), ElementsAre("n08", "n09", "n10", "n11"));
    EXPECT_THAT(expand("n[8-11]x"), ElementsAre("n8x", "n9x", "n10x", "n11x"));
    EXPECT_THAT(expand("r[0-1]n[1-2],login"), ElementsAre("r0n1", "r0n2", "r1n1", "r1n2", "login"));
    EXPECT_THAT(expand("n[00001-20000]"), SizeIs(20000));
}

TEST(allocation, malformed_lists_of_hosts_are_errors) {
    for (const char *const list : {"",
                                   ",",
                                   "a,",
                                   "a,,b",
                                   "n[",
                                   "n]",
                                   "n[]",
                                   "n[1",
                                   "n]1[",
                                   "n[2-1]",
                                   "n[a-b]",
                                   "n[1-]",
                                   "n[-1]",
                                   "n[1-2-3]",
                                   "n[1,]x y",
                                   "-n",
                                   "a b",
                                   "n[1-4000000000]",
                                   "n[1-999][1-999]",
                                   "n[99999999999999999999999]"}) {
        auto const expanded = expand_slurm_hosts(list);
        ASSERT_FALSE(expanded) << list;
        EXPECT_THAT(expanded.failure().message(), HasSubstr(list));
    }
}

TEST(allocation, numbers_per_host_are_expanded) {
    auto const expand = [](std::string_view list) { return expand_slurm_counts(list).value(); };
    EXPECT_THAT(expand("4"), ElementsAre(4));
    EXPECT_THAT(expand("4(x2),3,1(x1)"), ElementsAre(4, 4, 3, 1));
    for (const char *const list : {"", "0", "-1", "x", "4(x", "4(x)", "4(x0)", "4(2)", "4,,2", "4,",
                                   "4(x2)3", "2000000", "1(x999999999)"}) {
        EXPECT_FALSE(expand_slurm_counts(list)) << list;
    }
}

/// Without the variables of a batch system that may run this test.
class allocation_environment : public testing::Test {
protected:
    void SetUp() override {
        unset_all();
        setenv("PATH", "/nonexistent", 1);
    }
    void TearDown() override {
        unset_all(); // other tests of this program parse command lines, too
        setenv("PATH", path_.c_str(), 1);
    }

    static void unset_all() {
        for (const char *const name :
             {"SLURM_JOB_NODELIST", "SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE",
              "SLURM_STEP_ID", "SLURM_STEP_NODELIST", "SLURM_STEP_TASKS_PER_NODE",
              "SLURMD_NODENAME", "PBS_NODEFILE", "DIOMP_RSH"}) {
            unsetenv(name);
        }
    }

    static void set(const char *name, const std::string &value) {
        ASSERT_EQ(setenv(name, value.c_str(), 1), 0);
    }
    /// A directory with an executable named srun as PATH.
    void have_srun() {
        folder_ = std::filesystem::path(testing::TempDir()) / "allocation_test";
        std::filesystem::create_directories(folder_);
        std::ofstream(folder_ / "srun") << "#!/bin/sh\n";
        std::filesystem::permissions(folder_ / "srun", std::filesystem::perms::owner_all);
        set("PATH", folder_);
    }
    static std::variant<run_options, int> parse(std::vector<const char *> words) {
        words.insert(words.begin(), "diomp-run");
        return parse_command_line(static_cast<int>(words.size()), words.data());
    }
    static run_options accepted(std::vector<const char *> words) {
        auto parsed = parse(std::move(words));
        EXPECT_TRUE(std::holds_alternative<run_options>(parsed));
        auto *const options = std::get_if<run_options>(&parsed);
        return options != nullptr ? *options : run_options{};
    }
    static std::string refused(std::vector<const char *> words) {
        testing::internal::CaptureStderr();
        auto const parsed = parse(std::move(words));
        EXPECT_EQ(std::get<int>(parsed), status_usage);
        return testing::internal::GetCapturedStderr();
    }

private:
    std::string path_ = std::getenv("PATH");
    std::filesystem::path folder_;
};

TEST_F(allocation_environment, no_batch_system_no_allocation) {
    EXPECT_FALSE(find_allocation().value());
    EXPECT_THAT(refused({"./app"}), HasSubstr("how many ranks"));
}

TEST_F(allocation_environment, hosts_of_slurm_have_its_tasks_as_slots) {
    set("SLURM_JOB_NODELIST", "n[1-2],m");
    set("SLURM_TASKS_PER_NODE", "4(x2),2");
    auto const options = accepted({"./app"});
    EXPECT_THAT(options.hosts.list,
                ElementsAre(host_slots{"n1", 4}, host_slots{"n2", 4}, host_slots{"m", 2}));
    EXPECT_EQ(options.ranks, 0); // all slots
    EXPECT_EQ(options.hosts.remote_shell, "ssh -x -o BatchMode=yes");
    EXPECT_EQ(accepted({"-n", "3", "./app"}).ranks, 3);
}

TEST_F(allocation_environment, srun_is_the_remote_shell_unless_another_is_named) {
    set("SLURM_JOB_NODELIST", "n[1-2]");
    set("SLURM_TASKS_PER_NODE", "4(x2)");
    set("SLURM_JOB_CPUS_PER_NODE", "16,8");
    have_srun();
    std::string const shell = accepted({"./app"}).hosts.remote_shell;
    EXPECT_THAT(shell, HasSubstr("exec srun --nodes=1 --ntasks=1 --cpus-per-task=8 --overlap"));
    EXPECT_EQ(accepted({"--rsh", "mine", "./app"}).hosts.remote_shell, "mine");
    set("DIOMP_RSH", "chosen");
    EXPECT_EQ(accepted({"./app"}).hosts.remote_shell, "chosen");
    unsetenv("DIOMP_RSH");
    // Hosts of the command line are not those of the allocation.
    EXPECT_EQ(accepted({"--hosts", "x", "./app"}).hosts.remote_shell, "ssh -x -o BatchMode=yes");
}

TEST_F(allocation_environment, hosts_of_the_command_line_are_used_instead) {
    set("SLURM_JOB_NODELIST", "n[1-2]");
    set("SLURM_TASKS_PER_NODE", "4(x2)");
    EXPECT_THAT(accepted({"--hosts", "x:2", "./app"}).hosts.list, ElementsAre(host_slots{"x", 2}));
    auto const lent = accepted({"--remote-devices", "x", "./app"});
    EXPECT_THAT(lent.hosts.list, SizeIs(0));
    EXPECT_EQ(lent.ranks, 1);
}

TEST_F(allocation_environment, this_machine_alone_needs_no_agent) {
    set("SLURM_JOB_NODELIST", launch::host_name());
    set("SLURM_TASKS_PER_NODE", "3");
    EXPECT_THAT(accepted({"./app"}).hosts.list, SizeIs(0));
    EXPECT_EQ(accepted({"./app"}).ranks, 3);
    EXPECT_EQ(accepted({"-n", "8", "./app"}).ranks, 8);
    set("SLURM_JOB_NODELIST", "other");
    EXPECT_THAT(accepted({"./app"}).hosts.list, ElementsAre(host_slots{"other", 3}));
    set("SLURMD_NODENAME", "other"); // Slurm's name of this machine
    EXPECT_THAT(accepted({"./app"}).hosts.list, SizeIs(0));
}

TEST_F(allocation_environment, a_step_has_its_own_hosts) {
    set("SLURM_JOB_NODELIST", "n[1-3]");
    set("SLURM_TASKS_PER_NODE", "4(x3)");
    set("SLURM_STEP_NODELIST", "n[2-3]");
    set("SLURM_STEP_TASKS_PER_NODE", "1(x2)");
    set("SLURM_STEP_ID", "5");
    EXPECT_THAT(accepted({"./app"}).hosts.list,
                ElementsAre(host_slots{"n2", 1}, host_slots{"n3", 1}));
    // The shell of an interactive allocation is a step on one host, but may use all.
    set("SLURM_STEP_ID", "4294967290");
    EXPECT_THAT(accepted({"./app"}).hosts.list, SizeIs(3));
}

TEST_F(allocation_environment, what_slurm_has_not_written_is_refused) {
    set("SLURM_JOB_NODELIST", "n[1-2");
    set("SLURM_TASKS_PER_NODE", "4(x2)");
    EXPECT_THAT(refused({"./app"}), HasSubstr("SLURM_JOB_NODELIST: 'n[1-2'"));
    EXPECT_THAT(refused({"./app"}), HasSubstr("--hosts"));
    set("SLURM_JOB_NODELIST", "n[1-3]");
    EXPECT_THAT(refused({"./app"}), HasSubstr("SLURM_TASKS_PER_NODE=4(x2)"));
}

TEST_F(allocation_environment, pbs_names_a_host_once_per_rank) {
    std::string const path = testing::TempDir() + "allocation_test_nodes";
    std::ofstream(path) << "n1.site\nn1.site\nn2.site\nn1.site\n";
    set("PBS_NODEFILE", path);
    auto const options = accepted({"./app"});
    EXPECT_THAT(options.hosts.list,
                ElementsAre(host_slots{"n1.site", 3}, host_slots{"n2.site", 1}));
    EXPECT_EQ(options.hosts.remote_shell, "ssh -x -o BatchMode=yes");
    std::ofstream(path) << "n1\nn2\n";
    EXPECT_THAT(accepted({"./app"}).hosts.list,
                ElementsAre(host_slots{"n1", 1}, host_slots{"n2", 1}));
    std::ofstream(path) << launch::host_name() << ".site\n" << launch::host_name() << ".site\n";
    EXPECT_EQ(accepted({"./app"}).ranks, 2);
    std::remove(path.c_str());
    EXPECT_THAT(refused({"./app"}), HasSubstr("PBS_NODEFILE"));
}

} // namespace
} // namespace diomp::run
