// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Against files as kernels show them; job_test.py has a real kill where cgroups can be made.
#include "core/oom_counter.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace diomp::run {
namespace {

class oom_counter_files : public testing::Test {
protected:
    oom_counter_files() {
        std::string name = testing::TempDir() + "oom-XXXXXX";
        root_ = ::mkdtemp(name.data()) != nullptr ? name : "";
    }
    ~oom_counter_files() override { std::filesystem::remove_all(root_); }

    void write(const std::string &path, const std::string &text) const {
        std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
        std::ofstream(root_ + path) << text;
    }

    std::string root_;
};

TEST_F(oom_counter_files, version_2) {
    write("/proc/self/cgroup", "0::/jobs/7\n");
    write("/proc/self/mountinfo",
          "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
    write("/sys/fs/cgroup/jobs/7/memory.events", "low 0\nhigh 0\nmax 9\noom 4\noom_kill 3\n");
    write("/sys/fs/cgroup/jobs/7/memory.max", "max\n");
    write("/sys/fs/cgroup/jobs/memory.max", "67108864\n");
    auto const counter = oom_counter::of_this_process(root_);
    EXPECT_EQ(counter.kills(), 3U);
    EXPECT_EQ(counter.describe_scope(), "the cgroup /jobs/7, which may use 64.0 MiB");
    write("/sys/fs/cgroup/jobs/7/memory.events", "oom_kill 4\noom_group_kill 1\n");
    EXPECT_EQ(counter.kills(), 4U);
}

TEST_F(oom_counter_files, version_2_in_a_container) {
    write("/proc/self/cgroup", "0::/\n"); // a cgroup namespace
    write("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
    write("/sys/fs/cgroup/memory.events", "oom_kill 0\n");
    auto const counter = oom_counter::of_this_process(root_);
    EXPECT_EQ(counter.kills(), 0U);
    EXPECT_EQ(counter.describe_scope(), "this machine or of the cgroup /");
}

TEST_F(oom_counter_files, a_part_of_the_hierarchy_is_mounted) {
    write("/proc/self/cgroup", "0::/docker/c1/job\n");
    write("/proc/self/mountinfo", "30 23 0:26 /docker/c1 /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
    write("/sys/fs/cgroup/job/memory.events", "oom_kill 2\n");
    EXPECT_EQ(oom_counter::of_this_process(root_).kills(), 2U);
}

TEST_F(oom_counter_files, version_1_beside_an_empty_version_2) {
    write("/proc/self/cgroup", "4:cpu,memory:/batch/7\n1:name=systemd:/\n0::/\n");
    write("/proc/self/mountinfo",
          "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,cpu,memory\n"
          "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n");
    write("/sys/fs/cgroup/memory/batch/7/memory.oom_control",
          "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
    write("/sys/fs/cgroup/memory/batch/7/memory.limit_in_bytes", "9223372036854771712\n");
    auto const counter = oom_counter::of_this_process(root_);
    EXPECT_EQ(counter.kills(), 1U);
    EXPECT_EQ(counter.describe_scope(), "this machine or of the cgroup /batch/7");
}

TEST_F(oom_counter_files, without_a_cgroup_the_machine_counts) {
    write("/proc/self/cgroup", "0::/\n");
    write("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    write("/proc/vmstat", "nr_free_pages 5\noom_kill 6\n");
    auto const counter = oom_counter::of_this_process(root_);
    EXPECT_EQ(counter.kills(), 6U);
    EXPECT_EQ(counter.describe_scope(), "this machine");
}

TEST_F(oom_counter_files, files_that_are_missing_or_odd) {
    EXPECT_FALSE(oom_counter::of_this_process(root_).kills());
    write("/proc/self/cgroup", "nonsense\n4:memory\n");
    write("/proc/self/mountinfo", "1 2 3\n- - - -\n");
    write("/proc/vmstat", "oom_kill many\n");
    EXPECT_FALSE(oom_counter::of_this_process(root_).kills());
}

} // namespace
} // namespace diomp::run
