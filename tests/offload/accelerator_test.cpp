// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Segments on devices with memory of their own, between ranks. ctest runs it with every way that
// transfers can take; the paths that were taken are in DIOMP_STATS.
#include "offload/accelerated.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace {

using namespace accelerated;
using scripted::map;
using scripted::read;
using scripted::unmap;
using scripted::write;

class accelerators : public testing::TestWithParam<std::size_t> {};

/// Lengths in elements: one, a few, and more than one piece of a bounce.
INSTANTIATE_TEST_SUITE_P(lengths, accelerators, testing::Values(1, 1000, 700'001));

TEST_P(accelerators, put_and_get_from_device_to_device_by_mapped_pointers) {
    for (auto const &[from, to] : {std::pair(0, 0), std::pair(0, 1), std::pair(1, 0)}) {
        mapped source(GetParam(), from);
        mapped target(GetParam(), to);
        std::size_t const nbytes = GetParam() * sizeof(std::int32_t);
        source.set_on_device(pattern(me(), GetParam()));
        target.set_on_device(values(GetParam()));
        meet();
        ASSERT_EQ(
            ompx_target_put(next(), target.host_pointer(), to, source.host_pointer(), from, nbytes),
            0);
        meet();
        EXPECT_EQ(target.on_device(), pattern(previous(), GetParam()));
        EXPECT_EQ(target.host_pointer()[0], 0); // the host's copy is another
        source.set_on_device(values(GetParam()));
        ASSERT_EQ(ompx_target_get(source.device_pointer(), from, next(), target.device_pointer(),
                                  to, nbytes),
                  0);
        EXPECT_EQ(source.on_device(), pattern(me(), GetParam()));
        meet();
    }
}

TEST_P(accelerators, host_memory_on_either_side) {
    mapped device(GetParam(), 0);
    auto *const shared = static_cast<std::int32_t *>(
        ompx_alloc(GetParam() * sizeof(std::int32_t), 0, OMPX_MEM_SYMMETRIC));
    std::size_t const nbytes = GetParam() * sizeof(std::int32_t);
    values mine = pattern(me(), GetParam());
    meet();
    // Private host memory to the neighbour's device, and back into private memory.
    ASSERT_EQ(ompx_target_put(next(), device.host_pointer(), 0, mine.data(), host, nbytes), 0);
    meet();
    EXPECT_EQ(device.on_device(), pattern(previous(), GetParam()));
    values fetched(GetParam());
    ASSERT_EQ(ompx_target_get(fetched.data(), host, next(), device.host_pointer(), 0, nbytes), 0);
    EXPECT_EQ(fetched, mine);
    meet();
    // Own device to the neighbour's host memory, and back to the device.
    device.set_on_device(mine);
    meet();
    ASSERT_EQ(ompx_target_put(next(), shared, host, device.host_pointer(), 0, nbytes), 0);
    meet();
    EXPECT_EQ(values(shared, shared + GetParam()), pattern(previous(), GetParam()));
    device.set_on_device(values(GetParam()));
    ASSERT_EQ(ompx_target_get(device.host_pointer(), 0, next(), shared, host, nbytes), 0);
    EXPECT_EQ(device.on_device(), mine);
    meet();
    ompx_free(shared);
}

TEST(accelerator_memory, within_a_rank) {
    mapped first(5000, 0);
    mapped second(5000, 1);
    first.set_on_device(pattern(7, 5000));
    ASSERT_EQ(ompx_target_put(me(), second.host_pointer(), 1, first.host_pointer(), 0, 20000), 0);
    EXPECT_EQ(second.on_device(), pattern(7, 5000));
    values fetched(5000);
    ASSERT_EQ(ompx_target_get(fetched.data(), host, me(), second.device_pointer(), 1, 20000), 0);
    EXPECT_EQ(fetched, pattern(7, 5000));
    meet();
}

TEST(accelerator_memory, symmetric_asymmetric_and_local_allocations) {
    mapped in_the_way(static_cast<std::size_t>(1000 * (me() + 1)), 0); // ranks map different things
    auto *const symmetric = ompx_target_alloc(4096, 0, OMPX_SYMMETRIC_MEM_ALLOC_VALUE_);
    auto *const asymmetric = ompx_target_alloc(static_cast<std::size_t>(4096 * (me() + 1)), 0,
                                               OMPX_ASYMMETRIC_MEM_ALLOC_VALUE_);
    auto *const local = ompx_target_alloc(512, 0, OMPX_LOCAL_MEM_ALLOC_VALUE_);
    ASSERT_NE(symmetric, nullptr);
    ASSERT_NE(asymmetric, nullptr);
    ASSERT_NE(local, nullptr);
    write(local, pattern(me(), 128));
    for (void *const there : {symmetric, asymmetric}) {
        ASSERT_EQ(ompx_target_put(next(), there, 0, local, 0, 512), 0);
        meet();
        EXPECT_EQ(read<std::int32_t>(there, 128), pattern(previous(), 128));
        meet();
    }
    EXPECT_EQ(ompx_target_free(local, 0), 0);
    EXPECT_EQ(ompx_target_free(asymmetric, 0), 0);
    EXPECT_EQ(ompx_target_free(symmetric, 0), 0);
}

TEST(accelerator_memory, what_is_committed_later_is_followed) {
    constexpr std::size_t large = (std::size_t{48} << 20) / sizeof(std::int32_t);
    std::vector<std::unique_ptr<mapped>> all;
    for (int i = 0; i < 4; ++i) { // each needs more than was committed before
        all.push_back(std::make_unique<mapped>(large, 0));
        ASSERT_NE(all.back()->device_pointer(), nullptr);
        meet();
        std::int32_t const marker = 100 * me() + i;
        ASSERT_EQ(ompx_target_put(next(), all.back()->host_pointer() + large - 1, 0, &marker, host,
                                  sizeof(marker)),
                  0);
        meet();
        auto const *const last =
            static_cast<const std::int32_t *>(all.back()->device_pointer()) + large - 1;
        EXPECT_EQ(read<std::int32_t>(last, 1)[0], 100 * previous() + i);
    }
    meet();
}

TEST(accelerator_memory, the_buffer_that_owners_fetch_from_is_pinned) {
    const char *const paths = std::getenv("DIOMP_DEVICE_PATHS");
    if (ranks() == 1 || paths == nullptr || std::string(paths) != "bounce") {
        GTEST_SKIP() << "nothing bounces by way of another rank";
    }
    mapped source(1000, 0);
    mapped target(1000, 1);
    source.set_on_device(pattern(me(), 1000));
    meet();
    for (int i = 0; i < 2; ++i) { // pinned once
        ASSERT_EQ(ompx_target_put(next(), target.host_pointer(), 1, source.host_pointer(), 0, 4000),
                  0);
        EXPECT_EQ(scripted::num_registered(), 1);
    }
    meet();
    EXPECT_EQ(target.on_device(), pattern(previous(), 1000));
    meet();
}

TEST(accelerator_memory, global_host_memory_is_pinned_when_all_of_it_has_been_copied) {
    int const before = scripted::num_registered();
    constexpr std::size_t count = (3U << 20) / sizeof(std::int32_t) + 25;
    constexpr std::size_t half = count / 2 * sizeof(std::int32_t);
    auto *const global =
        static_cast<std::int32_t *>(ompx_alloc(count * sizeof(std::int32_t), 0, OMPX_MEM_LOCAL));
    auto *const neighbour = static_cast<std::int32_t *>(ompx_alloc(100, 0, OMPX_MEM_LOCAL));
    values const mine = pattern(me(), count);
    std::copy(mine.begin(), mine.end(), global);
    mapped device(count, 0);
    auto const put = [&](std::size_t first, std::size_t nbytes) {
        ASSERT_EQ(
            ompx_target_put(me(), device.host_pointer() + first, 0, global + first, host, nbytes),
            0);
    };
    put(0, half);
    EXPECT_EQ(scripted::num_registered(), before);
    for (int again = 0; again < 3; ++again) {
        put(count / 2, count * sizeof(std::int32_t) - half);
        EXPECT_EQ(scripted::num_registered(), before + 1);
    }
    EXPECT_EQ(device.on_device(), mine);
    ASSERT_EQ(ompx_target_put(me(), device.host_pointer(), 0, neighbour, host, 100), 0);
    ompx_free(global);
    EXPECT_EQ(scripted::num_registered(), before);
    ompx_free(neighbour);
}

TEST(accelerator_memory, global_host_memory_is_pinned_when_it_is_mapped_unless_it_is_small) {
    int const before = scripted::num_registered();
    for (auto const &[nbytes, pinned] :
         {std::pair(std::size_t{1} << 20, 1), std::pair((std::size_t{1} << 20) - 1, 0)}) {
        void *const global = ompx_alloc(nbytes, 0, OMPX_MEM_LOCAL);
        ASSERT_NE(map(global, nbytes, 0), nullptr);
        EXPECT_EQ(scripted::num_registered(), before + pinned);
        unmap(global, 0);
        ompx_free(global);
        EXPECT_EQ(scripted::num_registered(), before);
    }
}

TEST(accelerator_memory, events_and_fences_complete_what_is_under_way) {
    mapped source(64, 0);
    mapped target(64, 0);
    source.set_on_device(pattern(me(), 64));
    meet();
    ompx_event_t event = nullptr;
    ASSERT_EQ(
        ompx_target_put_nb(next(), target.host_pointer(), 0, source.host_pointer(), 0, 256, &event),
        0);
    ASSERT_EQ(ompx_event_wait(&event), 0);
    meet();
    EXPECT_EQ(target.on_device(), pattern(previous(), 64));
    target.set_on_device(values(64));
    meet();
    for (int i = 0; i < 64; ++i) { // one element each; more than there are streams
        ASSERT_EQ(ompx_target_get_nb(target.host_pointer() + i, 0, next(),
                                     source.host_pointer() + i, 0, 4, nullptr),
                  0);
    }
    ASSERT_EQ(ompx_fence(), 0);
    EXPECT_EQ(target.on_device(), pattern(next(), 64));
    meet();
}

TEST(accelerator_memory, collectives_on_device_copies) {
    mapped source(1000, 0);
    mapped target(1000, 0);
    source.set_on_device(values(1000, me() + 1));
    target.set_on_device(values(1000, -5));
    ASSERT_EQ(ompx_target_allreduce(target.host_pointer(), source.device_pointer(), 0, 1000,
                                    OMPX_INT32, OMPX_SUM, nullptr),
              0);
    EXPECT_EQ(target.on_device(), values(1000, ranks() * (ranks() + 1) / 2));
    ASSERT_EQ(ompx_target_reduce(target.host_pointer(), source.host_pointer(), 0, 10, OMPX_INT32,
                                 OMPX_PROD, 0, nullptr),
              0);
    int product = 1;
    for (int i = 2; i <= ranks(); ++i) {
        product *= i;
    }
    EXPECT_EQ(target.on_device()[9], me() == 0 ? product : ranks() * (ranks() + 1) / 2);
    ASSERT_EQ(ompx_target_bcast(source.host_pointer() + 1, 0, 4, ranks() - 1, nullptr), 0);
    EXPECT_EQ(source.on_device()[0], me() + 1);
    EXPECT_EQ(source.on_device()[1], ranks());
    EXPECT_EQ(source.on_device()[2], me() + 1);
    values const nowhere(4);
    EXPECT_EQ(ompx_target_bcast(const_cast<std::int32_t *>(nowhere.data()), 0, 4, 0, nullptr),
              OMPX_ERR_ADDRESS);
    meet();
}

TEST(accelerator_memory, unmapping_waits_for_transfers_under_way) {
    auto *const inbox = static_cast<std::int32_t *>(ompx_alloc(4096, 0, OMPX_MEM_SYMMETRIC));
    {
        mapped source(1024, 0);
        source.set_on_device(pattern(me(), 1024));
        ASSERT_EQ(ompx_target_put_nb(next(), inbox, host, source.host_pointer(), 0, 4096, nullptr),
                  0);
    }
    mapped reused(1024, 0); // the same memory
    reused.set_on_device(values(1024));
    meet();
    EXPECT_EQ(values(inbox, inbox + 1024), pattern(previous(), 1024));
    ompx_free(inbox);
}

TEST(accelerator_memory, unmapping_waits_for_gets_with_an_event) {
    constexpr std::size_t length = 8 << 20; // on its way for longer than unmapping takes
    auto *const outbox = static_cast<std::int32_t *>(ompx_alloc(length * 4, 0, OMPX_MEM_SYMMETRIC));
    std::fill_n(outbox, length, me());
    meet();
    ompx_event_t event = nullptr;
    void *unmapped = nullptr;
    {
        mapped target(length, 0);
        unmapped = target.device_pointer();
        ASSERT_EQ(
            ompx_target_get_nb(target.host_pointer(), 0, next(), outbox, host, length * 4, &event),
            0);
    }
    mapped reused(length, 0);
    ASSERT_EQ(reused.device_pointer(), unmapped);
    reused.set_on_device(values(length, -1));
    ASSERT_EQ(ompx_event_wait(&event), 0);
    EXPECT_EQ(reused.on_device(), values(length, -1));
    meet();
    ompx_free(outbox);
}

TEST(accelerator_memory, mistakes_are_errors_with_names) {
    mapped array(100, 0);
    meet();
    values private_memory(100);
    EXPECT_EQ(ompx_target_put(next(), private_memory.data(), 0, array.host_pointer(), 0, 4),
              OMPX_ERR_ADDRESS);
    EXPECT_THAT(ompx_last_error(), testing::HasSubstr("neither mapped on device 0"));
    EXPECT_EQ(ompx_target_put(next(), array.host_pointer(), 5, array.host_pointer(), 0, 4),
              OMPX_ERR_ARG);
    EXPECT_EQ(ompx_target_put(next(), array.host_pointer() + 50, 0, array.host_pointer(), 0, 400),
              OMPX_ERR_RANGE);
    EXPECT_EQ(ompx_target_put(next(), array.device_pointer(), 1, array.host_pointer(), 0, 4),
              OMPX_ERR_ADDRESS);
    meet();
    if (ranks() > 1) {
        mapped different(static_cast<std::size_t>(10 + me()), 0);
        meet();
        EXPECT_EQ(ompx_target_put(next(), different.host_pointer(), 0, array.host_pointer(), 0, 4),
                  OMPX_ERR_MISMATCH);
        EXPECT_THAT(ompx_last_error(), testing::HasSubstr("where this rank has"));
        meet();
    }
}

TEST(accelerator_memory, a_full_device_is_said_and_left_to_libomptarget) {
    ompx_segment_info_t info;
    mapped small(1, 0);
    ASSERT_EQ(ompx_target_segment_info(0, &info), 0);
    EXPECT_GT(info.nbytes, std::size_t{64} << 20);
    values const data(1);
    EXPECT_EQ(map(data.data(), std::size_t{8} << 30, 0), nullptr); // more than the device has
    // What the segment has space for, but the device no memory, unless the segment has it already.
    void *const half =
        ompx_target_alloc(info.nbytes / 2 - (std::size_t{1} << 20), 0, OMPX_LOCAL_MEM_ALLOC_VALUE_);
    if (half == nullptr) {
        EXPECT_THAT(ompx_last_error(), testing::HasSubstr("has no memory left for"));
    }
    EXPECT_EQ(ompx_target_free(half, 0), 0);
    mapped after(10, 0); // goes on
    EXPECT_NE(after.device_pointer(), nullptr);
    meet();
}

/// ctest runs it alone, with a library that is not there.
TEST(accelerator_library, DISABLED_that_is_missing_is_said_and_left_to_libomptarget) {
    EXPECT_EQ(scripted::allocate(100, 0, nullptr), nullptr);
    values const data(10);
    EXPECT_EQ(
        ompx_target_put(next(), const_cast<std::int32_t *>(data.data()), 0, data.data(), host, 4),
        OMPX_ERR_ADDRESS);
    EXPECT_EQ(ompx_target_alloc(100, 0, OMPX_LOCAL_MEM_ALLOC_VALUE_), nullptr);
    EXPECT_THAT(ompx_last_error(), testing::HasSubstr("see the warnings of the runtime"));
}

TEST(accelerator_memory, rules_of_the_vendor_are_kept) { EXPECT_STREQ(scripted::complaints(), ""); }

} // namespace
