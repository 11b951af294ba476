// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Segments that are made before the network, on CUDA's stand-in with two devices of 64 MiB.
#include "offload/accelerators.h"
#include "runtime/internal/preregistered_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace diomp::runtime {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using transport::memory_kind;

class early_devices : public testing::Test {
protected:
    void SetUp() override {
        auto connected = launch::connect();
        ASSERT_TRUE(connected.ok());
        launcher_ = connected.take();
        values_.offload.segment_size_bytes = std::size_t{4} << 20;
    }
    void TearDown() override { // what nobody has taken stays
        made_.claim(*device(0));
        made_.claim(*device(1));
    }
    std::vector<transport::device_range> make(std::span<const memory_kind> kinds) {
        testing::internal::CaptureStderr();
        auto ranges = make_preregistered_segments(values_, *launcher_, made_)(kinds);
        said_ = testing::internal::GetCapturedStderr();
        return ranges;
    }
    const offload::accelerator *device(int number) { return made_.devices().find("cuda", number); }

    std::unique_ptr<launch::launcher> launcher_;
    settings values_;
    offload::preregistered_segments made_{{FAKE_CUDA_LIBRARY, "/nowhere/libhip.so", 4}};
    std::string said_;
    static constexpr std::array both{memory_kind::cuda, memory_kind::hip};
};

TEST_F(early_devices, are_those_that_the_rank_drives) {
    values_.device.per_rank = 2;
    auto const ranges = make(both);
    ASSERT_THAT(ranges, SizeIs(2));
    EXPECT_THAT(said_, IsEmpty());
    for (int number = 0; number < 2; ++number) {
        auto const &[range, of] = ranges[static_cast<std::size_t>(number)];
        EXPECT_EQ(of, number);
        EXPECT_EQ(range.kind, memory_kind::cuda);
        EXPECT_EQ(range.nbytes, values_.offload.segment_size_bytes);
        auto const taken = made_.claim(*device(number));
        ASSERT_NE(taken, nullptr);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(taken->base()), range.address);
        EXPECT_EQ(taken->committed_bytes(), range.nbytes);
        EXPECT_TRUE(taken->is_permanent());
        EXPECT_EQ(made_.claim(*device(number)), nullptr);
    }
}

TEST_F(early_devices, without_a_size_get_a_share_of_the_device) {
    values_.offload.segment_size_bytes = 0;
    auto const ranges = make(both);
    ASSERT_THAT(ranges, SizeIs(1));
    EXPECT_EQ(ranges[0].range.nbytes, std::size_t{32} << 20);
    EXPECT_EQ(made_.claim(*device(1)), nullptr);
}

TEST_F(early_devices, are_none_of_other_kinds_and_nobody_minds) {
    EXPECT_THAT(make(std::array{memory_kind::hip}), IsEmpty());
    EXPECT_THAT(said_, IsEmpty());
    ::setenv("OMP_TARGET_OFFLOAD", "disabled", 1);
    EXPECT_THAT(make(both), IsEmpty());
    ::unsetenv("OMP_TARGET_OFFLOAD");
}

TEST_F(early_devices, without_room_get_a_warning_and_another_segment_later) {
    values_.offload.segment_size_bytes = std::size_t{80} << 20;
    EXPECT_THAT(make(both), IsEmpty());
    EXPECT_THAT(said_, HasSubstr("cuda device 0 is not registered with the network"));
    EXPECT_THAT(said_, HasSubstr("set DIOMP_DEVICE_SEGMENT_SIZE"));
    EXPECT_EQ(made_.claim(*device(0)), nullptr);
}

TEST_F(early_devices, more_than_there_are_get_a_warning) {
    values_.device.per_rank = 3;
    EXPECT_THAT(make(both), IsEmpty());
    EXPECT_THAT(said_, HasSubstr("DIOMP_DEVICES_PER_RANK"));
}

} // namespace
} // namespace diomp::runtime
