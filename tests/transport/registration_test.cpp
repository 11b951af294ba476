// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/registration.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace {

using diomp::transport::has_rdma_adapter;

/// A root folder with what the kernel shows of adapters.
class registration : public testing::Test {
protected:
    void SetUp() override {
        char name[] = "/tmp/diomp-root-XXXXXX";
        ASSERT_NE(::mkdtemp(name), nullptr);
        root = name;
    }
    void TearDown() override { std::filesystem::remove_all(root); }

    void write(const std::string &file, const std::string &text) const {
        std::filesystem::path const whole = std::filesystem::path(root) / file;
        std::filesystem::create_directories(whole.parent_path());
        std::ofstream(whole) << text;
    }

    std::string root;
};

TEST_F(registration, a_host_without_folders_has_no_adapter) {
    EXPECT_FALSE(has_rdma_adapter(root));
    EXPECT_FALSE(has_rdma_adapter(root + "/nowhere"));
}

TEST_F(registration, an_adapter_counts_when_one_port_is_up_and_its_device_file_is_there) {
    write("sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n");
    write("dev/infiniband/uverbs0", "");
    EXPECT_FALSE(has_rdma_adapter(root));
    write("sys/class/infiniband/mlx5_1/ports/1/state", "2: INIT\n");
    EXPECT_FALSE(has_rdma_adapter(root));
    write("sys/class/infiniband/mlx5_1/ports/2/state", "4: ACTIVE\n");
    EXPECT_TRUE(has_rdma_adapter(root));
}

TEST_F(registration, an_adapter_that_a_container_hides_does_not_count) {
    write("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
    EXPECT_FALSE(has_rdma_adapter(root));
    write("dev/infiniband/rdma_cm", "");
    EXPECT_FALSE(has_rdma_adapter(root));
}

TEST_F(registration, slingshot_counts_with_its_device_file) {
    write("sys/class/cxi/cxi0/device/uevent", "");
    EXPECT_FALSE(has_rdma_adapter(root));
    write("dev/cxi0", "");
    EXPECT_TRUE(has_rdma_adapter(root));
}

} // namespace
