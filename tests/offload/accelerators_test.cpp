// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The table of devices that this process uses, over CUDA's stand-in.
#include "offload/accelerators.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace diomp::offload {
namespace {

class accelerators_test : public ::testing::Test {
protected:
    // Whoever opens a context fails: looking for a device must not cost the memory of all others.
    void SetUp() override { ::setenv("FAKE_CUDA_FAIL", "cuDevicePrimaryCtxRetain=999", 1); }
    void TearDown() override { ::unsetenv("FAKE_CUDA_FAIL"); }

    accelerators tested_{{FAKE_CUDA_LIBRARY, "/nowhere/libhip.so", 4}};
};

TEST_F(accelerators_test, a_device_is_found_by_its_number_without_a_context) {
    const accelerator *const second = tested_.find("cuda", 1);
    ASSERT_NE(second, nullptr);
    EXPECT_EQ(second->made_by, vendor::cuda);
    EXPECT_EQ(second->id, device::device_id(1));
    EXPECT_EQ(tested_.find("cuda", 1), second);
    EXPECT_NE(tested_.find("cuda", 0), second);
    EXPECT_EQ(tested_.find("cuda", -1), nullptr);
    EXPECT_EQ(tested_.find("cuda", 2), nullptr);
    EXPECT_EQ(tested_.find("x86_64", 0), nullptr);
}

TEST_F(accelerators_test, a_device_is_found_by_its_identity_without_a_context) {
    const accelerator *const second = tested_.find("cuda", 1);
    ASSERT_NE(second, nullptr);
    auto uuid = second->backend->uuid_of(second->id);
    ASSERT_TRUE(uuid.ok());
    EXPECT_EQ(tested_.find(vendor::cuda, uuid.value()), second);
    EXPECT_EQ(tested_.find(vendor::none, uuid.value()), nullptr);
    EXPECT_EQ(tested_.find(vendor::hip, uuid.value()), nullptr);
    uuid.value()[3] ^= std::byte{1};
    EXPECT_EQ(tested_.find(vendor::cuda, uuid.value()), nullptr);
}

} // namespace
} // namespace diomp::offload
