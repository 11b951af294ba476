// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The runtime's kernels on a real device.
#include "device/real_fixture.h"

#include <cstdio>

namespace diomp::device {
namespace {

using namespace real; // NOLINT(google-build-using-namespace)

/// Elements of what is on the device.
template <typename T>
std::vector<T> read_back(const std::byte *from, std::size_t count) {
    std::vector<T> into(count);
    expect_ok(copy_and_wait(*cuda, into.data(), from, count * sizeof(T)));
    return into;
}

// Small whole numbers, which every type holds exactly; device_cuda_test compares all bits.
template <typename T>
void reduce_two(std::byte *device, ompx_type_t type, ompx_op_t op, T wanted_of_2_and_3) {
    constexpr std::size_t count = 5001;
    std::vector<T> const two(count, T(2));
    std::vector<T> const three(count, T(3));
    std::byte *const other = device + 4 * mebibyte + 16;
    expect_ok(copy_and_wait(*cuda, device, two.data(), count * sizeof(T)));
    expect_ok(copy_and_wait(*cuda, other, three.data(), count * sizeof(T)));
    auto made = cuda->make_queue(zero);
    ASSERT_TRUE(made.ok());
    const void *const sources[] = {device, other};
    expect_ok(made.value()->reduce({type, op, 5}, device, sources, count));
    expect_ok(made.value()->wait());
    EXPECT_EQ(read_back<T>(device, count), std::vector<T>(count, wanted_of_2_and_3))
        << "type " << type << ", operator " << op;
}

TEST(device_real_test, kernels_reduce) {
    if (!cuda->can_reduce(zero, {OMPX_FLOAT, OMPX_SUM})) {
        GTEST_SKIP() << "no kernels in this build, or the driver does not take them";
    }
    auto segment = reserve(8 * mebibyte, 8 * mebibyte);
    std::byte *const device = segment->base();
    reduce_two<float>(device, OMPX_FLOAT, OMPX_SUM, 5);
    reduce_two<double>(device, OMPX_DOUBLE, OMPX_PROD, 6);
    reduce_two<double>(device, OMPX_DOUBLE, OMPX_AVG, 1);
    reduce_two<std::int8_t>(device, OMPX_INT8, OMPX_MAX, 3);
    reduce_two<std::int64_t>(device, OMPX_INT64, OMPX_MIN, 2);
    reduce_two<std::uint32_t>(device, OMPX_UINT32, OMPX_BXOR, 1);
    reduce_two<std::int16_t>(device, OMPX_INT16, OMPX_LAND, 1);
    reduce_two<std::uint16_t>(device, OMPX_UINT16, OMPX_AVG, 1);
}

// Beside a copy on the device, which moves two bytes per byte where a sum of two moves three.
TEST(device_real_test, speed_of_a_reduction) {
    if (!cuda->can_reduce(zero, {OMPX_FLOAT, OMPX_SUM})) {
        GTEST_SKIP() << "no kernels in this build, or the driver does not take them";
    }
    std::size_t const half = large() / 2;
    auto segment = reserve(2 * half, 2 * half);
    std::vector<float> const ones(half / sizeof(float), 1);
    std::byte *const device = segment->base();
    expect_ok(copy_and_wait(*cuda, device, ones.data(), half));
    expect_ok(copy_and_wait(*cuda, device + half, ones.data(), half));
    auto made = cuda->make_queue(zero);
    ASSERT_TRUE(made.ok());
    const void *const sources[] = {device, device + half};
    constexpr int rounds = 10;
    auto const start = std::chrono::steady_clock::now();
    for (int round = 0; round < rounds; ++round) {
        expect_ok(made.value()->reduce({OMPX_FLOAT, OMPX_SUM}, device, sources, ones.size()));
    }
    expect_ok(made.value()->wait());
    std::printf("figure reduce-two-arrays %zu %.2f GB/s\n", half,
                static_cast<double>(3 * half) * rounds / seconds_since(start) * 1e-9);
    EXPECT_EQ(read_back<float>(device, 1000), std::vector<float>(1000, 1 + rounds));
}

} // namespace
} // namespace diomp::device
