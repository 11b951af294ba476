// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `declare target` variables on accelerators, by every path that ctest has accelerator_test take:
// to other ranks' copies there is only one.
#include "offload/accelerated.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <sched.h>

extern "C" int ompx_target_put_detach(int rank, void *dst, int dst_device, const void *src,
                                      int src_device, std::size_t nbytes,
                                      std::uintptr_t event) noexcept;

namespace {

using namespace accelerated;

constexpr std::size_t length = 300'001; // more than two pieces of a bounce
std::int32_t g_field[length];
std::int32_t g_short[4];
std::int32_t g_of_one_rank[4];
std::int32_t g_late[4];
std::int32_t g_other[4];

class declared_on_accelerators : public testing::Test {
protected:
    static void SetUpTestSuite() {
        scripted::declare(g_field, sizeof(g_field), "field");
        scripted::declare(g_short, sizeof(g_short), "short");
        meet();
    }

    /// A rank's own copy, by the runtime, which loads it.
    static values own(const std::int32_t *of, int device, std::size_t count) {
        values read(count);
        EXPECT_EQ(ompx_target_get(read.data(), host, me(), of, device, count * sizeof(read[0])), 0)
            << ompx_last_error();
        return read;
    }
    static void set_own(std::int32_t *of, int device, const values &to) {
        ASSERT_EQ(ompx_target_put(me(), of, device, to.data(), host, to.size() * sizeof(to[0])), 0)
            << ompx_last_error();
    }
};

TEST_F(declared_on_accelerators, a_device_that_has_not_been_used_is_loaded_for_another_rank) {
    values const sent(4, me() + 1);
    ASSERT_EQ(ompx_target_put(next(), g_short, 1, sent.data(), host, sizeof(g_short)), 0)
        << ompx_last_error();
    meet();
    EXPECT_EQ(own(g_short, 1, 4), values(4, previous() + 1));
    EXPECT_EQ(g_short[0], 0); // the host's copy is another
    meet();
}

TEST_F(declared_on_accelerators, from_and_to_all_sorts_of_memory) {
    for (auto const &[from, to] : {std::pair(0, 0), std::pair(0, 1), std::pair(1, 0)}) {
        mapped source(length, from);
        source.set_on_device(pattern(me(), length));
        set_own(g_field, to, values(length));
        meet();
        // A mapped array into the neighbour's variable, and that variable into a mapped array.
        ASSERT_EQ(ompx_target_put(next(), g_field, to, source.host_pointer(), from, length * 4), 0)
            << ompx_last_error();
        meet();
        EXPECT_EQ(own(g_field, to, length), pattern(previous(), length));
        source.set_on_device(values(length));
        ASSERT_EQ(ompx_target_get(source.host_pointer(), from, next(), g_field, to, length * 4), 0);
        EXPECT_EQ(source.on_device(), pattern(me(), length));
        meet();
        // A part of the own variable to a place inside the neighbour's.
        values const part = pattern(me() + 5, 100);
        ASSERT_EQ(ompx_target_put(next(), g_field + 1000, to, part.data(), host, 400), 0);
        meet();
        values const received = own(g_field, to, 1101);
        EXPECT_EQ(received[999], pattern(previous(), 1000)[999]);
        EXPECT_EQ(values(received.begin() + 1000, received.begin() + 1100),
                  pattern(previous() + 5, 100));
        EXPECT_EQ(received[1100], pattern(previous(), 1101)[1100]);
        meet();
        // The own variable into the neighbour's mapped array.
        ASSERT_EQ(ompx_target_put(next(), source.host_pointer(), from, g_field, to, 400), 0);
        meet();
        values const there = source.on_device();
        EXPECT_EQ(values(there.begin(), there.begin() + 100),
                  pattern((previous() + ranks() - 1) % ranks(), 100)); // what it has received
        meet();
    }
}

TEST_F(declared_on_accelerators, without_waiting_and_detached) {
    values mine = pattern(me(), length);
    ompx_event_t event = nullptr;
    ASSERT_EQ(ompx_target_put_nb(next(), g_field, 0, mine.data(), host, length * 4, &event), 0);
    ASSERT_EQ(ompx_event_wait(&event), 0);
    ASSERT_EQ(ompx_barrier(), 0);
    EXPECT_EQ(own(g_field, 0, length), pattern(previous(), length));
    values fetched(length);
    ASSERT_EQ(ompx_target_get_nb(fetched.data(), host, next(), g_field, 0, length * 4, nullptr), 0);
    ASSERT_EQ(ompx_fence(), 0);
    EXPECT_EQ(fetched, mine);
    meet();
    std::atomic<bool> is_over{false};
    values const other = pattern(me() + 3, 4);
    ASSERT_EQ(ompx_target_put_detach(next(), g_short, 0, other.data(), host, sizeof(g_short),
                                     reinterpret_cast<std::uintptr_t>(&is_over)),
              0);
    while (!is_over.load()) {
        sched_yield();
    }
    ASSERT_EQ(ompx_barrier(), 0);
    EXPECT_EQ(own(g_short, 0, 4), pattern(previous() + 3, 4));
    meet();
}

TEST_F(declared_on_accelerators, boxes) {
    constexpr std::array<std::size_t, 2> volume{150, 1000};
    constexpr std::array<std::size_t, 2> sizes{200, 1500};
    constexpr std::array<std::size_t, 2> begin{2, 7};
    constexpr std::array<std::size_t, 2> zero{0, 0};
    values const mine = pattern(me(), volume[0] * volume[1]);
    set_own(g_field, 1, values(length, -1));
    meet();
    ASSERT_EQ(ompx_target_put_rect(next(), g_field, 1, mine.data(), host, 4, 2, volume.data(),
                                   begin.data(), zero.data(), sizes.data(), volume.data()),
              0)
        << ompx_last_error();
    meet();
    values expected(length, -1);
    values const sent = pattern(previous(), volume[0] * volume[1]);
    for (std::size_t row = 0; row < volume[0]; ++row) {
        std::copy_n(sent.begin() + static_cast<std::ptrdiff_t>(row * volume[1]), volume[1],
                    expected.begin() +
                        static_cast<std::ptrdiff_t>((begin[0] + row) * sizes[1] + begin[1]));
    }
    EXPECT_EQ(own(g_field, 1, length), expected);
    values back(volume[0] * volume[1]);
    ASSERT_EQ(ompx_target_get_rect(back.data(), host, next(), g_field, 1, 4, 2, volume.data(),
                                   zero.data(), begin.data(), volume.data(), sizes.data()),
              0);
    EXPECT_EQ(back, mine);
    meet();
}

TEST_F(declared_on_accelerators, collectives) {
    set_own(g_field, 0, values(1000, me() + 1));
    mapped sums(1000, 0);
    ASSERT_EQ(
        ompx_target_allreduce(sums.host_pointer(), g_field, 0, 1000, OMPX_INT32, OMPX_SUM, nullptr),
        0)
        << ompx_last_error();
    EXPECT_EQ(sums.on_device(), values(1000, ranks() * (ranks() + 1) / 2));
    ASSERT_EQ(ompx_target_bcast(g_field, 0, 4000, ranks() - 1, nullptr), 0) << ompx_last_error();
    EXPECT_EQ(own(g_field, 0, 1000), values(1000, ranks()));
    EXPECT_EQ(ompx_target_bcast(g_short, 0, sizeof(g_short) + 4, 0, nullptr), OMPX_ERR_RANGE);
    meet();
}

TEST_F(declared_on_accelerators, mistakes_are_errors_and_write_nothing) {
    set_own(g_short, 0, values(4));
    meet();
    values data(8, 9);
    EXPECT_EQ(ompx_target_put(next(), g_short, 0, data.data(), host, 20), OMPX_ERR_RANGE);
    EXPECT_THAT(ompx_last_error(), testing::HasSubstr("past the end of"));
    EXPECT_EQ(ompx_target_put(next(), g_short + 3, 0, data.data(), host, 8), OMPX_ERR_RANGE);
    EXPECT_EQ(ompx_target_get(g_short, 0, next(), g_field, 0, 20), OMPX_ERR_RANGE);
    EXPECT_EQ(ompx_target_put(next(), g_short, 7, data.data(), host, 4), OMPX_ERR_ARG);
    meet();
    EXPECT_EQ(own(g_short, 0, 4), values(4));
    meet();
    if (ranks() > 1) {
        if (me() == 0) {
            scripted::declare(g_of_one_rank, sizeof(g_of_one_rank), "of_one_rank");
            EXPECT_EQ(ompx_target_put(1, g_of_one_rank, 0, data.data(), host, 4), OMPX_ERR_ADDRESS);
            EXPECT_THAT(ompx_last_error(), testing::HasSubstr("has no declare target variable"));
        }
        // Sizes and names that differ: another program.
        scripted::declare(g_late, me() == 0 ? 16 : 8, "late");
        scripted::declare(g_other, sizeof(g_other), me() == 0 ? "one" : "other");
        meet();
        EXPECT_EQ(ompx_target_put(me() == 0 ? 1 : 0, g_late, 0, data.data(), host, 4),
                  OMPX_ERR_MISMATCH)
            << ompx_last_error();
        EXPECT_EQ(ompx_target_put(me() == 0 ? 1 : 0, g_other, 0, data.data(), host, 4),
                  OMPX_ERR_ADDRESS);
        EXPECT_THAT(ompx_last_error(), testing::HasSubstr("has no declare target variable"));
        meet();
    }
}

} // namespace
