// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Boxes and detached transfers between accelerators, by every path that ctest has accelerator_test
// take.
#include "offload/accelerated.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <sched.h>

// diomp.h has them for programs with OpenMP only.
extern "C" {
int ompx_target_put_detach(int rank, void *dst, int dst_device, const void *src, int src_device,
                           std::size_t nbytes, std::uintptr_t event) noexcept;
int ompx_target_get_detach(void *dst, int dst_device, int rank, const void *src, int src_device,
                           std::size_t nbytes, std::uintptr_t event) noexcept;
// The program's OpenMP: an event is the address of a flag.
__attribute__((visibility("default"))) void omp_fulfill_event(std::uintptr_t event) {
    reinterpret_cast<std::atomic<bool> *>(event)->store(true);
}
}

namespace {

using namespace accelerated;
using triple = std::array<std::size_t, 3>;

std::size_t count(const triple &sizes) { return sizes[0] * sizes[1] * sizes[2]; }

struct box {
    triple volume;
    triple dst_offsets;
    triple src_offsets;
    triple dst_sizes;
    triple src_sizes;

    /// What dst holds afterwards.
    [[nodiscard]] values applied(values dst, const values &src) const {
        for (std::size_t i = 0; i < volume[0]; ++i) {
            for (std::size_t j = 0; j < volume[1]; ++j) {
                for (std::size_t k = 0; k < volume[2]; ++k) {
                    dst[((dst_offsets[0] + i) * dst_sizes[1] + dst_offsets[1] + j) * dst_sizes[2] +
                        dst_offsets[2] + k] =
                        src[((src_offsets[0] + i) * src_sizes[1] + src_offsets[1] + j) *
                                src_sizes[2] +
                            src_offsets[2] + k];
                }
            }
        }
        return dst;
    }
    int put(int rank, void *dst, int dst_device, const void *src, int src_device) const {
        return ompx_target_put_rect(rank, dst, dst_device, src, src_device, sizeof(std::int32_t), 3,
                                    volume.data(), dst_offsets.data(), src_offsets.data(),
                                    dst_sizes.data(), src_sizes.data());
    }
    int get(void *dst, int dst_device, int rank, const void *src, int src_device) const {
        return ompx_target_get_rect(dst, dst_device, rank, src, src_device, sizeof(std::int32_t), 3,
                                    volume.data(), dst_offsets.data(), src_offsets.data(),
                                    dst_sizes.data(), src_sizes.data());
    }
};

class boxes : public testing::TestWithParam<box> {};

/// Single elements (a column), rows, planes that join, all of an array, and more than a piece of a
/// bounce: of short rows, and in one run.
INSTANTIATE_TEST_SUITE_P(
    shapes, boxes,
    testing::Values(box{{1, 40, 1}, {2, 1, 3}, {0, 5, 6}, {4, 50, 7}, {1, 60, 9}},
                    box{{3, 4, 5}, {1, 2, 3}, {0, 1, 2}, {5, 7, 9}, {4, 6, 8}},
                    box{{3, 6, 8}, {1, 0, 0}, {2, 0, 0}, {5, 6, 8}, {9, 6, 8}},
                    box{{4, 5, 6}, {0, 0, 0}, {0, 0, 0}, {4, 5, 6}, {4, 5, 6}},
                    box{{1, 150, 1000}, {0, 1, 20}, {0, 3, 7}, {1, 160, 1100}, {1, 155, 1030}},
                    box{{1, 2, 140'000}, {0, 1, 1}, {0, 0, 0}, {1, 4, 140'003}, {1, 2, 140'001}}));

TEST_P(boxes, between_devices) {
    box const &shape = GetParam();
    for (auto const &[from, to] : {std::pair(0, 0), std::pair(0, 1)}) {
        mapped source(count(shape.src_sizes), from);
        mapped target(count(shape.dst_sizes), to);
        mapped back(count(shape.dst_sizes), from);
        source.set_on_device(pattern(me(), count(shape.src_sizes)));
        values const before(count(shape.dst_sizes), -1);
        target.set_on_device(before);
        back.set_on_device(before);
        meet();
        ASSERT_EQ(shape.put(next(), target.host_pointer(), to, source.host_pointer(), from), 0)
            << ompx_last_error();
        meet();
        EXPECT_EQ(target.on_device(),
                  shape.applied(before, pattern(previous(), count(shape.src_sizes))));
        ASSERT_EQ(shape.get(back.device_pointer(), from, next(), source.host_pointer(), from), 0)
            << ompx_last_error();
        EXPECT_EQ(back.on_device(), shape.applied(before, pattern(next(), count(shape.src_sizes))));
        meet();
    }
}

TEST_P(boxes, host_memory_on_either_side) {
    box const &shape = GetParam();
    std::size_t const num_dst = count(shape.dst_sizes);
    std::size_t const num_src = count(shape.src_sizes);
    mapped device(num_dst, 0);
    mapped source(num_src, 0);
    auto *const shared = static_cast<std::int32_t *>(
        ompx_alloc(num_dst * sizeof(std::int32_t), 0, OMPX_MEM_SYMMETRIC));
    values const before(num_dst, -1);
    values const mine = pattern(me(), num_src);
    device.set_on_device(before);
    source.set_on_device(mine);
    std::ranges::copy(before, shared);
    meet();
    // Private host memory to the neighbour's device, own device to its host memory.
    ASSERT_EQ(shape.put(next(), device.host_pointer(), 0, mine.data(), host), 0);
    ASSERT_EQ(shape.put(next(), shared, host, source.host_pointer(), 0), 0);
    meet();
    values const expected = shape.applied(before, pattern(previous(), num_src));
    EXPECT_EQ(device.on_device(), expected);
    EXPECT_EQ(values(shared, shared + num_dst), expected);
    // And from there.
    values fetched = before;
    ASSERT_EQ(shape.get(fetched.data(), host, next(), source.host_pointer(), 0), 0);
    EXPECT_EQ(fetched, shape.applied(before, pattern(next(), num_src)));
    meet();
    ompx_free(shared);
}

TEST(boxes_of_accelerators, mistakes_are_errors_with_names) {
    mapped array(100, 0);
    meet();
    values mine(100);
    box const good{{1, 5, 5}, {0, 0, 0}, {0, 0, 0}, {1, 10, 10}, {1, 10, 10}};
    box outside = good;
    outside.dst_offsets[1] = 6;
    EXPECT_EQ(outside.put(next(), array.host_pointer(), 0, mine.data(), host), OMPX_ERR_RANGE);
    EXPECT_THAT(ompx_last_error(), testing::HasSubstr("in dimension 1 the box covers"));
    box larger = good;
    larger.dst_sizes[2] = 100; // than what is mapped
    EXPECT_EQ(larger.put(next(), array.host_pointer(), 0, mine.data(), host), OMPX_ERR_RANGE);
    EXPECT_EQ(larger.get(array.host_pointer(), 0, next(), array.host_pointer(), 0), OMPX_ERR_RANGE);
    EXPECT_EQ(good.put(next(), mine.data(), 0, mine.data(), host), OMPX_ERR_ADDRESS);
    EXPECT_EQ(good.put(next(), array.host_pointer(), 7, mine.data(), host), OMPX_ERR_ARG);
    EXPECT_EQ(good.put(ranks(), array.host_pointer(), 0, mine.data(), host), OMPX_ERR_RANK);
    box nothing = good;
    nothing.volume[0] = 0;
    EXPECT_EQ(nothing.put(next(), array.host_pointer(), 0, mine.data(), host), 0);
    meet();
}

void wait_for(std::atomic<bool> &event) {
    auto const end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!event.load()) {
        ASSERT_LT(std::chrono::steady_clock::now(), end);
        sched_yield();
    }
}

TEST(detached, transfers_fulfil_their_events) {
    for (std::size_t const length : {std::size_t{1}, std::size_t{300'001}}) {
        std::size_t const nbytes = length * sizeof(std::int32_t);
        mapped source(length, 0);
        mapped target(length, 1);
        source.set_on_device(pattern(me(), length));
        target.set_on_device(values(length));
        meet();
        std::atomic<bool> put_is_over{false};
        ASSERT_EQ(ompx_target_put_detach(next(), target.host_pointer(), 1, source.host_pointer(), 0,
                                         nbytes, reinterpret_cast<std::uintptr_t>(&put_is_over)),
                  0);
        wait_for(put_is_over);
        ASSERT_EQ(ompx_barrier(), 0); // no fence: the event says that it is there
        EXPECT_EQ(target.on_device(), pattern(previous(), length));
        values fetched(length);
        std::atomic<bool> get_is_over{false};
        ASSERT_EQ(ompx_target_get_detach(fetched.data(), host, next(), source.device_pointer(), 0,
                                         nbytes, reinterpret_cast<std::uintptr_t>(&get_is_over)),
                  0);
        wait_for(get_is_over);
        EXPECT_EQ(fetched, pattern(next(), length));
        meet();
    }
    std::atomic<bool> event{false};
    int data = 0;
    EXPECT_EQ(ompx_target_put_detach(next(), &data, 0, &data, host, 4,
                                     reinterpret_cast<std::uintptr_t>(&event)),
              OMPX_ERR_ADDRESS);
    EXPECT_FALSE(event.load());
    EXPECT_EQ(ompx_target_put_detach(next(), nullptr, 0, nullptr, host, 0,
                                     reinterpret_cast<std::uintptr_t>(&event)),
              0);
    EXPECT_TRUE(event.load());
    meet();
}

} // namespace
