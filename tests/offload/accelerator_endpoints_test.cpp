// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Endpoints of GPUs between ranks, on the stand-in, whose memory processors load here: the test
// prepares regions as libomptarget does, and its threads run the code of GPUs in them.
#include "offload/accelerated_region.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace {

using namespace accelerated;

constexpr std::size_t mebibyte = std::size_t{1} << 20;

TEST(endpoints, know_the_rank) {
    region const inside;
    ASSERT_NE(inside.own(), nullptr);
    EXPECT_EQ(inside.own()->version, static_cast<std::uint32_t>(DIOMP_ENDPOINT_VERSION));
    EXPECT_EQ(inside.own()->rank, me());
    EXPECT_EQ(inside.own()->num_ranks, ranks());
}

TEST(endpoints, puts_and_gets_reach_symmetric_memory_of_all_ranks) {
    on_device<std::int64_t> const cells(static_cast<std::size_t>(ranks()));
    meet();
    {
        region const inside;
        for (int rank = 0; rank < ranks(); ++rank) {
            EXPECT_EQ(inside.put(rank, cells.at() + me(), std::int64_t{me() * 100 + rank}), 0);
        }
    }
    meet();
    {
        region const inside;
        for (int rank = 0; rank < ranks(); ++rank) {
            EXPECT_EQ(cells.at()[rank], rank * 100 + me());
            std::int64_t value = 0;
            EXPECT_EQ(inside.get(value, rank, cells.at() + me()), 0);
            EXPECT_EQ(value, me() * 100 + rank);
        }
    }
    meet();
}

TEST(endpoints, puts_reach_mapped_memory) {
    mapped const array(100, 0);
    auto *const at = static_cast<std::int32_t *>(array.device_pointer());
    meet();
    region const inside;
    EXPECT_EQ(inside.put(next(), at + 7, std::int32_t{me() + 5}), 0);
    meet();
    EXPECT_EQ(at[7], previous() + 5);
    meet();
}

TEST(endpoints, memory_that_is_committed_later_is_reached_from_the_next_region_on) {
    on_device<char> const small(64);
    meet();
    {
        region const first;
    }
    on_device<char> const large(100 * mebibyte);
    char *const last = large.at() + 100 * mebibyte - 1;
    meet();
    {
        region const second;
        EXPECT_EQ(second.put(next(), last, static_cast<char>(me() + 1)), 0);
    }
    meet();
    EXPECT_EQ(*last, static_cast<char>(previous() + 1));
    meet();
}

TEST(endpoints, regions_signal_each_other) {
    constexpr std::uint64_t rounds = 200;
    on_device<std::uint64_t> const signals(2);
    on_device<std::uint64_t> const data(1);
    signals.at()[0] = signals.at()[1] = 0;
    meet();
    {
        region const inside;
        diomp_call const call{DIOMP_CALL_SIGNAL_WAIT, -1, {}};
        for (std::uint64_t round = 1; round <= rounds; ++round) {
            std::uint64_t const value = round * 10 + static_cast<std::uint64_t>(me());
            EXPECT_EQ(diomp_device_put_signal(inside.own(), next(), data.at(), &value,
                                              sizeof(value),
                                              {signals.at(), round, OMPX_SIGNAL_SET}),
                      0);
            EXPECT_EQ(
                diomp_device_wait(inside.own(), &call, signals.at(), {8, 0, OMPX_CMP_GE, round}),
                0);
            EXPECT_EQ(*data.at(), round * 10 + static_cast<std::uint64_t>(previous()));
            EXPECT_EQ(diomp_device_put_signal(inside.own(), previous(), nullptr, nullptr, 0,
                                              {signals.at() + 1, 1, OMPX_SIGNAL_ADD}),
                      0);
            EXPECT_EQ(diomp_device_wait(inside.own(), &call, signals.at() + 1,
                                        {8, 0, OMPX_CMP_GE, round}),
                      0);
        }
    }
    meet();
}

TEST(endpoints, barriers_of_regions_order_puts) {
    constexpr std::int64_t rounds = 50;
    on_device<std::int64_t> const cells(static_cast<std::size_t>(ranks()));
    meet();
    for (int regions = 0; regions < 2; ++regions) {
        region const inside;
        for (std::int64_t round = 1; round <= rounds; ++round) {
            for (int rank = 0; rank < ranks(); ++rank) {
                EXPECT_EQ(inside.put(rank, cells.at() + me(), round + me()), 0);
            }
            ASSERT_EQ(diomp_device_barrier(inside.own(), nullptr), 0);
            for (int rank = 0; rank < ranks(); ++rank) {
                ASSERT_EQ(cells.at()[rank], round + rank);
            }
            ASSERT_EQ(diomp_device_barrier(inside.own(), nullptr), 0);
        }
    }
    meet();
}

TEST(endpoints, barriers_of_groups_order_puts) {
    constexpr int rounds = 50;
    on_device<std::int64_t> const cells(static_cast<std::size_t>(ranks()));
    ompx_group_t reversed = nullptr;
    ASSERT_EQ(ompx_group_split(ompx_group_world, 0, -me(), &reversed), 0);
    meet();
    {
        region const inside;
        for (std::int64_t round = 1; round <= rounds; ++round) {
            for (int rank = 0; rank < ranks(); ++rank) {
                EXPECT_EQ(inside.put(rank, cells.at() + me(), round * 10 + me()), 0);
            }
            ASSERT_EQ(diomp_device_barrier(inside.own(), reversed), 0);
            for (int rank = 0; rank < ranks(); ++rank) {
                EXPECT_EQ(cells.at()[rank], round * 10 + rank);
            }
            ASSERT_EQ(diomp_device_barrier(inside.own(), reversed), 0);
        }
    }
    meet();
    EXPECT_EQ(ompx_group_free(&reversed), 0);
}

TEST(endpoints, barriers_of_what_is_no_group_are_errors) {
    int group = 0;
    meet();
    {
        region const inside;
        EXPECT_EQ(diomp_device_barrier(inside.own(), &group), OMPX_ERR_ARG);
    }
    EXPECT_THAT(ompx_last_error(), testing::HasSubstr("ompx_barrier(group="));
    EXPECT_THAT(ompx_last_error(), testing::HasSubstr("is not a group"));
    meet();
}

TEST(endpoints, atomics_of_all_ranks_lose_nothing) {
    constexpr int times = 500;
    on_device<double> const sum(1);
    *sum.at() = 0;
    meet();
    {
        region const inside;
        double const half = 0.5;
        for (int i = 0; i < times; ++i) {
            EXPECT_EQ(diomp_device_atomic_fetch(inside.own(), 0, sum.at(), &half, nullptr,
                                                OMPX_DOUBLE, OMPX_SUM),
                      0);
        }
    }
    meet();
    EXPECT_EQ(*sum.at(), me() == 0 ? 0.5 * times * ranks() : 0);
    meet();
}

TEST(endpoints, the_end_of_a_region_reports_its_first_error) {
    on_device<std::int64_t> const cell(1);
    on_device<std::int64_t> const local(1, OMPX_LOCAL_MEM_ALLOC_VALUE_);
    {
        region const inside;
        EXPECT_EQ(inside.put(ranks(), cell.at(), std::int64_t{1}), OMPX_ERR_RANK);
        EXPECT_EQ(inside.put(next(), local.at(), std::int64_t{1}), OMPX_ERR_ADDRESS);
    }
    EXPECT_THAT(ompx_last_error(), testing::HasSubstr("ompx_put(rank="));
    EXPECT_THAT(ompx_last_error(), testing::HasSubstr("in a target region on device 0: rank"));
    {
        region const inside;
        EXPECT_EQ(inside.put(next(), local.at(), std::int64_t{1}), OMPX_ERR_ADDRESS);
    }
    EXPECT_THAT(ompx_last_error(), testing::HasSubstr("local or asymmetric memory"));
    meet();
}

TEST(endpoints, DISABLED_without_device_ipc_other_ranks_are_unreachable) {
    on_device<std::int64_t> const cell(1);
    meet();
    {
        region const inside;
        EXPECT_EQ(inside.put(me(), cell.at(), std::int64_t{3}), 0);
        EXPECT_EQ(inside.put(next(), cell.at(), std::int64_t{4}), OMPX_ERR_UNSUPPORTED);
    }
    EXPECT_THAT(ompx_last_error(), testing::HasSubstr("can neither load nor store"));
    EXPECT_EQ(*cell.at(), 3);
    meet();
}

TEST(endpoints, rules_of_the_vendor_are_kept) { EXPECT_STREQ(scripted::complaints(), ""); }

} // namespace
