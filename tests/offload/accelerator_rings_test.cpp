// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls in regions that go by requests to the rank's proxy thread, since no memory of other ranks
// is mapped for the device.
#include "offload/accelerated_region.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace accelerated;
using testing::HasSubstr;

constexpr diomp_part alone{0, 1};

int put(const region &in, int rank, void *dst, const void *src, std::size_t nbytes,
        std::uint64_t *ticket = nullptr) {
    return diomp_device_put(in.own(), DIOMP_CALL_PUT, rank, dst, src, nbytes, alone, ticket);
}
int get(const region &in, void *dst, int rank, const void *src, std::size_t nbytes,
        std::uint64_t *ticket = nullptr) {
    return diomp_device_get(in.own(), DIOMP_CALL_GET, dst, rank, src, nbytes, alone, ticket);
}
int put_signal(const region &in, int rank, void *dst, const void *src, std::size_t nbytes,
               diomp_signal signal) {
    return diomp_device_put_signal(in.own(), rank, dst, src, nbytes, signal);
}
int fence(const region &in) {
    diomp_call const call{DIOMP_CALL_FENCE, -1, {}};
    return diomp_ring_fence(in.own(), &call);
}
int wait_for(const region &in, const std::uint64_t *signal, std::uint64_t value) {
    diomp_call const call{DIOMP_CALL_SIGNAL_WAIT, -1, {}};
    return diomp_device_wait(in.own(), &call, signal, {8, 0, OMPX_CMP_GE, value});
}
template <typename T>
int fetch(const region &in, int rank, T *target, T operand, T *result, int type, int op) {
    return diomp_device_atomic_fetch(in.own(), rank, target, &operand, result, type, op);
}

unsigned char value_at(int from, std::size_t nbytes, std::size_t i) {
    return static_cast<unsigned char>(static_cast<std::size_t>(from) * 31 + nbytes + i * 7 + 1);
}
void fill(unsigned char *at, int from, std::size_t nbytes) {
    for (std::size_t i = 0; i < nbytes; ++i) {
        at[i] = value_at(from, nbytes, i);
    }
}
bool is_filled(const unsigned char *at, int from, std::size_t nbytes) {
    for (std::size_t i = 0; i < nbytes; ++i) {
        if (at[i] != value_at(from, nbytes, i)) {
            return false;
        }
    }
    return at[nbytes] == 0xee;
}

constexpr std::size_t largest = 300'000;

/// Sizes that fit a request, need several, or go by address.
class sizes : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(rings, sizes,
                         testing::Values(1, 7, 8, 24, 25, 40, 41, 48, 49, 200, 5000, largest));

TEST_P(sizes, puts_and_gets_between_devices) {
    std::size_t const nbytes = GetParam();
    on_device<unsigned char> const target(largest + 1);
    on_device<unsigned char> const source(largest + 1);
    std::vector<unsigned char> own(nbytes + 1, 0xee);
    for (bool const from_thread : {true, false}) {
        if (from_thread && nbytes > 5000) {
            continue; // works, but slowly
        }
        std::fill_n(target.at(), largest + 1, 0xee);
        unsigned char *const from = from_thread ? own.data() : source.at();
        fill(from, me(), nbytes);
        meet();
        {
            region const inside;
            EXPECT_EQ(put(inside, next(), target.at(), from, nbytes), 0);
            from[0] ^= 1; // a blocking put is done with its source
            EXPECT_EQ(fence(inside), 0);
        }
        meet();
        EXPECT_TRUE(is_filled(target.at(), previous(), nbytes));
        unsigned char *const to = from_thread ? own.data() : source.at();
        to[nbytes] = 0xee;
        {
            region const inside;
            EXPECT_EQ(get(inside, to, next(), target.at(), nbytes), 0);
            EXPECT_TRUE(is_filled(to, me(), nbytes));
        }
        meet();
    }
}

TEST_P(sizes, puts_and_gets_of_global_host_memory) {
    std::size_t const nbytes = GetParam();
    on_hosts<unsigned char> const target(largest + 1);
    on_device<unsigned char> const source(largest + 1);
    std::fill_n(target.at(), largest + 1, 0xee);
    fill(source.at(), me(), nbytes);
    meet();
    {
        region const inside;
        EXPECT_EQ(put(inside, next(), target.at(), source.at(), nbytes), 0);
    }
    meet(); // the end of the region and the host's fence complete it
    EXPECT_TRUE(is_filled(target.at(), previous(), nbytes));
    {
        region const inside;
        source.at()[nbytes] = 0xee;
        EXPECT_EQ(get(inside, source.at(), next(), target.at(), nbytes), 0);
        EXPECT_TRUE(is_filled(source.at(), me(), nbytes));
    }
    meet();
}

TEST_P(sizes, data_is_there_before_its_signal) {
    std::size_t const nbytes = GetParam();
    on_device<unsigned char> const target(largest + 1);
    on_device<unsigned char> const source(largest + 1);
    on_device<std::uint64_t> const signals(2);
    std::vector<unsigned char> own(nbytes);
    signals.at()[0] = signals.at()[1] = 0;
    std::fill_n(target.at(), largest + 1, 0xee);
    meet();
    {
        region const inside;
        for (int round = 1; round <= 3; ++round) {
            unsigned char *const from = round == 2 && nbytes <= 200 ? own.data() : source.at();
            fill(from, me() + round, nbytes);
            auto const number = static_cast<std::uint64_t>(round);
            EXPECT_EQ(put_signal(inside, next(), target.at(), from, nbytes,
                                 {signals.at(), number, OMPX_SIGNAL_SET}),
                      0);
            ASSERT_EQ(wait_for(inside, signals.at(), number), 0);
            EXPECT_TRUE(is_filled(target.at(), previous() + round, nbytes));
            EXPECT_EQ(put_signal(inside, previous(), nullptr, nullptr, 0,
                                 {signals.at() + 1, number, OMPX_SIGNAL_SET}),
                      0);
            ASSERT_EQ(wait_for(inside, signals.at() + 1, number), 0);
        }
    }
    meet();
}

TEST(rings, mapped_memory_is_reached) {
    mapped const array(100, 0);
    auto *const at = static_cast<std::int32_t *>(array.device_pointer());
    meet();
    {
        region const inside;
        EXPECT_EQ(inside.put(next(), at + 7, std::int32_t{me() + 5}), 0);
    }
    meet();
    EXPECT_EQ(at[7], previous() + 5);
    meet();
}

TEST(rings, signals_in_host_memory_are_set_and_added) {
    on_hosts<std::uint64_t> const signal(1);
    on_hosts<std::int64_t> const data(8);
    on_device<std::int64_t> const source(100);
    meet();
    {
        region const inside;
        for (int rank = 0; rank < ranks(); ++rank) {
            std::int64_t const value = me() + 10;
            EXPECT_EQ(put_signal(inside, rank, data.at() + me(), &value, 8,
                                 {signal.at(), 3, OMPX_SIGNAL_ADD}),
                      0);
        }
    }
    meet();
    EXPECT_EQ(*signal.at(), 3U * static_cast<unsigned>(ranks()));
    for (int rank = 0; rank < ranks(); ++rank) {
        EXPECT_EQ(data.at()[rank], rank + 10);
    }
    meet();
    {
        region const inside;
        EXPECT_EQ(put_signal(inside, next(), data.at(), source.at(), 64,
                             {signal.at(), 77, OMPX_SIGNAL_SET}),
                  0);
    }
    meet();
    EXPECT_EQ(*signal.at(), 77U);
    meet();
}

TEST(rings, atomics_on_host_memory) {
    constexpr int times = 200;
    on_hosts<std::int64_t> const sum(3);
    on_hosts<float> const single(1);
    meet();
    {
        region const inside;
        std::int64_t old = -1;
        for (int i = 0; i < times; ++i) {
            EXPECT_EQ(fetch<std::int64_t>(inside, 0, sum.at(), 2, nullptr, OMPX_INT64, OMPX_SUM),
                      0);
            std::int64_t const before = old;
            EXPECT_EQ(fetch<std::int64_t>(inside, 0, sum.at() + 1, 1, &old, OMPX_INT64, OMPX_SUM),
                      0);
            EXPECT_GT(old, before);
            EXPECT_EQ(fetch<float>(inside, 0, single.at(), 0.5F, nullptr, OMPX_FLOAT, OMPX_SUM), 0);
        }
        EXPECT_EQ(
            fetch<std::int64_t>(inside, 0, sum.at() + 2, me() + 1, nullptr, OMPX_INT64, OMPX_MAX),
            0);
        EXPECT_EQ(fence(inside), 0);
    }
    meet();
    {
        region const inside;
        std::int64_t value = 0;
        EXPECT_EQ(fetch<std::int64_t>(inside, 0, sum.at(), 0, &value, OMPX_INT64, OMPX_NO_OP), 0);
        EXPECT_EQ(value, 2 * times * ranks());
        EXPECT_EQ(get(inside, &value, 0, sum.at() + 2, 8), 0);
        EXPECT_EQ(value, ranks());
    }
    meet();
    {
        region const inside;
        if (me() == 0) {
            std::int64_t value = 0;
            EXPECT_EQ(sum.at()[1], times * ranks());
            EXPECT_EQ(*single.at(), 0.5F * static_cast<float>(times * ranks()));
            std::int64_t const expected = ranks();
            std::int64_t const desired = -8;
            EXPECT_EQ(diomp_device_compare_swap(inside.own(), 0, sum.at() + 2, &expected, &desired,
                                                &value, OMPX_INT64),
                      0);
            EXPECT_EQ(value, expected);
            EXPECT_EQ(sum.at()[2], -8);
        }
    }
    meet();
}

/// All ranks update words of rank 0's device, by requests; rank 0's own threads by the atomics of
/// its GPU, meanwhile.
TEST(rings, atomics_on_memory_of_gpus) {
    constexpr int times = 60;
    on_device<std::int64_t> const sums(4);
    on_device<double> const twice(2);
    on_device<float> const single(1);
    std::fill_n(sums.at(), 4, 0);
    std::fill_n(twice.at(), 2, 0.0);
    single.at()[0] = 0;
    meet();
    {
        region const inside;
        std::int64_t last = -1;
        for (int i = 0; i < times; ++i) {
            EXPECT_EQ(fetch<std::int64_t>(inside, 0, sums.at(), 2, nullptr, OMPX_INT64, OMPX_SUM),
                      0);
            EXPECT_EQ(fetch<double>(inside, 0, twice.at(), 0.5, nullptr, OMPX_DOUBLE, OMPX_SUM), 0);
            EXPECT_EQ(fetch<float>(inside, 0, single.at(), 1.0F, nullptr, OMPX_FLOAT, OMPX_SUM), 0);
            std::int64_t old = -1;
            EXPECT_EQ(fetch<std::int64_t>(inside, 0, sums.at() + 1, 1, &old, OMPX_INT64, OMPX_SUM),
                      0);
            EXPECT_GT(old, last);
            last = old;
        }
        EXPECT_EQ(
            fetch<std::int64_t>(inside, 0, sums.at() + 2, me() + 1, nullptr, OMPX_INT64, OMPX_MAX),
            0);
        EXPECT_EQ(
            fetch<double>(inside, 0, twice.at() + 1, -1.0 - me(), nullptr, OMPX_DOUBLE, OMPX_MIN),
            0);
        EXPECT_EQ(fence(inside), 0); // they are complete
        std::int64_t value = 0;
        EXPECT_EQ(fetch<std::int64_t>(inside, 0, sums.at(), 0, &value, OMPX_INT64, OMPX_NO_OP), 0);
        EXPECT_GE(value, 2 * times);
    }
    meet();
    if (me() == 0) {
        EXPECT_EQ(sums.at()[0], 2 * times * ranks());
        EXPECT_EQ(sums.at()[1], times * ranks());
        EXPECT_EQ(sums.at()[2], ranks());
        EXPECT_EQ(twice.at()[0], 0.5 * times * ranks());
        EXPECT_EQ(twice.at()[1], -static_cast<double>(ranks()));
        EXPECT_EQ(single.at()[0], static_cast<float>(times * ranks()));
    }
    meet();
}

TEST(rings, words_of_gpus_are_compared_and_swapped) {
    constexpr int times = 25;
    on_device<std::int32_t> const word(2);
    word.at()[0] = word.at()[1] = 0;
    meet();
    {
        region const inside; // a counter that is incremented by compare and swap
        std::int32_t seen = 0;
        for (int i = 0; i < times;) {
            std::int32_t const expected = seen;
            std::int32_t const desired = seen + 1;
            ASSERT_EQ(diomp_device_compare_swap(inside.own(), ranks() - 1, word.at() + 1, &expected,
                                                &desired, &seen, OMPX_INT32),
                      0);
            i += seen == expected ? 1 : 0;
            seen = seen == expected ? desired : seen;
        }
    }
    meet();
    if (me() == ranks() - 1) {
        EXPECT_EQ(word.at()[1], times * ranks());
        EXPECT_EQ(word.at()[0], 0);
    }
    meet();
}

/// Each rank signals all, with and without data: the data is there before its signal is counted.
TEST(rings, signals_are_added_in_memory_of_gpus) {
    constexpr std::uint64_t rounds = 6;
    on_device<std::int64_t> const data(static_cast<std::size_t>(ranks()) * 100);
    on_device<std::int64_t> const source(100);
    on_device<std::uint64_t> const signals(2);
    signals.at()[0] = signals.at()[1] = 0;
    meet();
    {
        region const inside;
        auto const all = static_cast<std::uint64_t>(ranks());
        for (std::uint64_t round = 1; round <= rounds; ++round) {
            // Inline, in several requests, and by address.
            std::size_t const count = round % 3 == 0 ? 100 : round % 3 == 1 ? 2 : 6;
            std::vector<std::int64_t> own(count, static_cast<std::int64_t>(round) + me());
            std::copy(own.begin(), own.end(), source.at());
            for (int rank = 0; rank < ranks(); ++rank) {
                ASSERT_EQ(put_signal(inside, rank, data.at() + me() * 100,
                                     count == 6 ? own.data() : source.at(), count * 8,
                                     {signals.at(), 1, OMPX_SIGNAL_ADD}),
                          0);
            }
            ASSERT_EQ(wait_for(inside, signals.at(), round * all), 0);
            for (int rank = 0; rank < ranks(); ++rank) {
                for (std::size_t i = 0; i < count; ++i) {
                    ASSERT_EQ(data.at()[static_cast<std::size_t>(rank) * 100 + i],
                              static_cast<std::int64_t>(round) + rank);
                }
            }
            for (int rank = 0; rank < ranks(); ++rank) { // all have looked
                ASSERT_EQ(put_signal(inside, rank, nullptr, nullptr, 0,
                                     {signals.at() + 1, 1, OMPX_SIGNAL_ADD}),
                          0);
            }
            ASSERT_EQ(wait_for(inside, signals.at() + 1, round * all), 0);
        }
    }
    meet();
}

/// A put and an update take different ways to the same signal.
TEST(rings, signals_of_a_thread_that_are_set_and_added_keep_their_order) {
    on_device<std::uint64_t> const signal(1);
    signal.at()[0] = 0;
    meet();
    for (std::uint64_t round = 1; round <= 10; ++round) {
        {
            region const inside;
            EXPECT_EQ(
                put_signal(inside, next(), nullptr, nullptr, 0, {signal.at(), 7, OMPX_SIGNAL_ADD}),
                0);
            EXPECT_EQ(put_signal(inside, next(), nullptr, nullptr, 0,
                                 {signal.at(), 100 * round, OMPX_SIGNAL_SET}),
                      0);
            EXPECT_EQ(
                put_signal(inside, next(), nullptr, nullptr, 0, {signal.at(), 3, OMPX_SIGNAL_ADD}),
                0);
        }
        meet();
        EXPECT_EQ(signal.at()[0], 100 * round + 3);
        meet();
    }
}

TEST(rings, words_of_gpus_in_no_allocation_are_errors) {
    on_device<std::uint64_t> const signal(1);
    meet();
    std::uint64_t old = 0;
    auto *const beyond = signal.at() + (std::size_t{1} << 20) / sizeof(old);
    {
        region const inside;
        EXPECT_NE(fetch<std::uint64_t>(inside, next(), beyond, 1, &old, OMPX_UINT64, OMPX_SUM), 0);
    }
    EXPECT_THAT(ompx_last_error(), HasSubstr("ompx_atomic_fetch(rank="));
    for (int const op : std::vector<int>{OMPX_PROD, OMPX_LAND, OMPX_BXOR, -1, OMPX_NO_OP + 1}) {
        region const inside; // no request is needed to know this
        EXPECT_EQ(fetch<double>(inside, next(), reinterpret_cast<double *>(signal.at()), 1, nullptr,
                                OMPX_DOUBLE, op),
                  OMPX_ERR_ARG);
    }
    EXPECT_THAT(ompx_last_error(), HasSubstr("does not take this operator"));
    meet();
}

/// FAKE_CUDA_KERNELS=none.
TEST(rings, DISABLED_without_the_kernel_words_of_gpus_are_not_updated) {
    on_device<std::uint64_t> const signal(1);
    on_device<std::int64_t> const cells(200);
    signal.at()[0] = 0;
    meet();
    std::uint64_t old = 0;
    {
        region const inside;
        EXPECT_NE(fetch<std::uint64_t>(inside, next(), signal.at(), 1, &old, OMPX_UINT64, OMPX_SUM),
                  0);
    }
    EXPECT_THAT(ompx_last_error(), HasSubstr("could not update a word of its GPU"));
    {
        region const inside; // without a reply: a fence, or the end of the region, reports it
        EXPECT_EQ(put_signal(inside, next(), cells.at(), cells.at() + 100, 800,
                             {signal.at(), 1, OMPX_SIGNAL_ADD}),
                  0);
    }
    EXPECT_THAT(ompx_last_error(), HasSubstr("ompx_put_signal(rank="));
    {
        region const inside;
        EXPECT_EQ(
            put_signal(inside, next(), nullptr, nullptr, 0, {signal.at(), 5, OMPX_SIGNAL_SET}), 0);
        EXPECT_EQ(wait_for(inside, signal.at(), 5), 0);
    }
    meet();
}

/// By threads of several rings in turn, and after puts that only the barrier completes.
TEST(rings, barriers_of_regions_order_puts) {
    constexpr int rounds = 20;
    on_device<std::int64_t> const cells(static_cast<std::size_t>(ranks()));
    meet();
    region const inside;
    for (std::int64_t round = 1; round <= rounds; ++round) {
        std::thread([&] {
            for (int rank = 0; rank < ranks(); ++rank) {
                EXPECT_EQ(inside.put(rank, cells.at() + me(), round + me()), 0);
            }
            EXPECT_EQ(diomp_device_barrier(inside.own(), nullptr), 0);
            for (int rank = 0; rank < ranks(); ++rank) {
                EXPECT_EQ(cells.at()[rank], round + rank);
            }
        }).join();
        ASSERT_EQ(diomp_device_barrier(inside.own(), nullptr), 0);
    }
    meet();
}

std::vector<int> ranks_from(int first, int step) {
    std::vector<int> made;
    for (int rank = first; rank < ranks(); rank += step) {
        made.push_back(rank);
    }
    return made;
}

/// Of neighbours in rings of two, and of all ranks in another order, between those of the world.
TEST(rings, barriers_of_groups_of_ranks) {
    constexpr int rounds = 10;
    on_device<std::int64_t> const cells(static_cast<std::size_t>(ranks()));
    ompx_group_t half = nullptr;
    ompx_group_t reversed = nullptr;
    ASSERT_EQ(ompx_group_split(ompx_group_world, me() % 2, me(), &half), 0);
    ASSERT_EQ(ompx_group_split(ompx_group_world, 0, -me(), &reversed), 0);
    meet();
    {
        region const inside;
        for (std::int64_t round = 1; round <= rounds; ++round) {
            for (int const rank : ranks_from(me() % 2, 2)) {
                EXPECT_EQ(inside.put(rank, cells.at() + me(), round * 10 + me()), 0);
            }
            ASSERT_EQ(diomp_device_barrier(inside.own(), half), 0);
            for (int const rank : ranks_from(me() % 2, 2)) {
                EXPECT_EQ(cells.at()[rank], round * 10 + rank);
            }
            ASSERT_EQ(diomp_device_barrier(inside.own(), round % 2 == 0 ? reversed : nullptr), 0);
        }
    }
    meet();
    {
        region const inside; // a later region goes on
        std::thread([&] {
            for (int i = 0; i < 3; ++i) {
                EXPECT_EQ(diomp_device_barrier(inside.own(), half), 0);
                EXPECT_EQ(diomp_device_barrier(inside.own(), reversed), 0);
            }
        }).join();
    }
    meet();
    EXPECT_EQ(ompx_group_free(&half), 0);
    EXPECT_EQ(ompx_group_free(&reversed), 0);
}

TEST(rings, barriers_of_groups_of_devices) {
    std::vector<ompx_endpoint_t> list;
    for (int rank = ranks() - 1; rank >= 0; --rank) {
        list.push_back({rank, 0});
    }
    ompx_group_t devices = nullptr;
    ASSERT_EQ(ompx_group_create_endpoints(&devices, list.data(), static_cast<int>(list.size())), 0);
    list[0].device = -1;
    ompx_group_t hosts = nullptr;
    ASSERT_EQ(ompx_group_create_endpoints(&hosts, list.data(), static_cast<int>(list.size())), 0);
    list[0].device = 0;
    list.push_back({0, 1});
    ompx_group_t several = nullptr;
    ASSERT_EQ(ompx_group_create_endpoints(&several, list.data(), static_cast<int>(list.size())), 0);
    meet();
    {
        region const inside;
        EXPECT_EQ(diomp_device_barrier(inside.own(), devices), 0);
        EXPECT_EQ(diomp_device_barrier(inside.own(), devices), 0);
        EXPECT_EQ(diomp_device_barrier(inside.own(), hosts), OMPX_ERR_UNSUPPORTED);
    }
    EXPECT_THAT(ompx_last_error(), HasSubstr("is the host of rank"));
    EXPECT_THAT(ompx_last_error(), HasSubstr("ompx_barrier(group="));
    {
        region const inside;
        EXPECT_EQ(diomp_device_barrier(inside.own(), several), OMPX_ERR_UNSUPPORTED);
    }
    EXPECT_THAT(ompx_last_error(), HasSubstr("several devices of a rank"));
    {
        region const inside;
        EXPECT_EQ(diomp_device_barrier(inside.own(), OMPX_GROUP_NONE), OMPX_ERR_ARG);
    }
    EXPECT_THAT(ompx_last_error(), HasSubstr("OMPX_GROUP_NONE"));
    meet();
    EXPECT_EQ(ompx_group_free(&devices), 0);
    EXPECT_EQ(ompx_group_free(&hosts), 0);
    EXPECT_EQ(ompx_group_free(&several), 0);
}

TEST(rings, tickets_and_fences_complete_transfers) {
    constexpr std::size_t num = 20;
    constexpr std::size_t nbytes = 1000;
    on_device<unsigned char> const target(num * nbytes);
    on_device<unsigned char> const source(num * nbytes);
    fill(source.at(), me(), num * nbytes);
    meet();
    {
        region const inside;
        std::vector<std::uint64_t> tickets(num);
        for (std::size_t i = 0; i < num; ++i) {
            EXPECT_EQ(put(inside, next(), target.at() + i * nbytes, source.at() + i * nbytes,
                          nbytes, &tickets[i]),
                      0);
            EXPECT_NE(tickets[i], 0U);
        }
        diomp_call const call{DIOMP_CALL_EVENT_WAIT, -1, {}};
        for (std::uint64_t const each : tickets) {
            EXPECT_EQ(diomp_ring_wait(inside.own(), &call, each), 0);
            EXPECT_TRUE(diomp_ring_is_done(inside.own(), each));
        }
        EXPECT_EQ(fence(inside), 0);
        EXPECT_EQ(fence(inside), 0);
    }
    meet();
    for (std::size_t i = 0; i < num * nbytes; ++i) {
        ASSERT_EQ(target.at()[i], value_at(previous(), num * nbytes, i)) << i;
    }
    meet();
}

TEST(rings, many_teams_share_them) {
    constexpr int num_teams = 6;
    constexpr int times = 300;
    on_hosts<std::int64_t> const count(1);
    on_hosts<std::int64_t> const cells(num_teams);
    meet();
    {
        region const inside;
        std::vector<std::thread> teams;
        for (int team = 0; team < num_teams; ++team) {
            teams.emplace_back([&, team] {
                for (std::int64_t i = 1; i <= times; ++i) {
                    std::int64_t back = 0;
                    EXPECT_EQ(inside.put(next(), cells.at() + team, i), 0);
                    EXPECT_EQ(fence(inside), 0);
                    EXPECT_EQ(inside.get(back, next(), cells.at() + team), 0);
                    EXPECT_EQ(back, i);
                    EXPECT_EQ(fetch<std::int64_t>(inside, next(), count.at(), 1, nullptr,
                                                  OMPX_INT64, OMPX_SUM),
                              0);
                }
            });
        }
        for (std::thread &each : teams) {
            each.join();
        }
    }
    meet();
    EXPECT_EQ(*count.at(), num_teams * times);
    meet();
}

TEST(rings, the_end_of_a_region_waits_for_its_requests_while_another_one_runs) {
    on_hosts<std::int64_t> const cells(2000);
    meet();
    {
        region const outer;
        for (int round = 0; round < 20; ++round) {
            {
                region const inner;
                for (std::int64_t i = 0; i < 100; ++i) {
                    EXPECT_EQ(inner.put(next(), cells.at() + round * 100 + i, i + 1), 0);
                }
            }
            EXPECT_EQ(ompx_fence(), 0);
            std::int64_t last = 0;
            EXPECT_EQ(ompx_get(&last, next(), cells.at() + round * 100 + 99, sizeof(last)), 0);
            EXPECT_EQ(last, 100);
        }
    }
    meet();
}

TEST(rings, errors_of_the_proxy_are_reported_with_the_call) {
    on_device<std::int64_t> const cells(1000);
    meet();
    {
        region const inside; // longer than the allocation, inside the segment
        EXPECT_NE(put(inside, next(), cells.at(), cells.at(), 100'000), 0);
        EXPECT_EQ(fetch<std::int64_t>(inside, next(), cells.at(), 1, nullptr, OMPX_INT64, 12),
                  OMPX_ERR_ARG);
    }
    EXPECT_THAT(ompx_last_error(), HasSubstr("in a target region on device 0"));
    {
        region const inside;
        EXPECT_EQ(inside.put(ranks(), cells.at(), std::int64_t{1}), OMPX_ERR_RANK);
        EXPECT_EQ(inside.put(next(), cells.at(), std::int64_t{1}), 0); // and the next ones work
    }
    EXPECT_THAT(ompx_last_error(), HasSubstr("is outside the world"));
    meet();
}

TEST(rings, a_ring_that_was_given_up_works_in_the_next_region) {
    on_hosts<std::int64_t> const cells(3);
    meet();
    {
        region const inside;
        diomp_ring *const ring = diomp_own_ring(inside.own());
        EXPECT_EQ(inside.put(next(), cells.at(), std::int64_t{1}), 0);
        // As a thread leaves it that has reserved an index and not found a free slot in time.
        diomp_reserve_64(&ring->reserved, 1);
        diomp_ring_break(ring, DIOMP_DEVICE_TIMED_OUT);
        EXPECT_EQ(inside.put(next(), cells.at() + 1, std::int64_t{2}), OMPX_ERR_TIMEOUT);
        EXPECT_EQ(fence(inside), OMPX_ERR_TIMEOUT);
        std::thread([&] { // most likely on another ring
            std::int64_t value = 0;
            if (diomp_own_ring(inside.own()) != ring) {
                EXPECT_EQ(inside.get(value, me(), cells.at() + 2), 0);
            }
        })
            .join();
    }
    EXPECT_THAT(ompx_last_error(), HasSubstr("an earlier request of this region"));
    {
        region const inside;
        EXPECT_EQ(inside.put(next(), cells.at() + 2, std::int64_t{3}), 0);
        EXPECT_EQ(fence(inside), 0);
    }
    meet();
    EXPECT_EQ(cells.at()[0], 1); // what was stored before was executed
    EXPECT_EQ(cells.at()[1], 0);
    EXPECT_EQ(cells.at()[2], 3);
    meet();
}

/// Nanoseconds that the proxy thread has run; -1: there is none.
std::int64_t proxy_time_ns() {
    for (auto const &task : std::filesystem::directory_iterator("/proc/self/task")) {
        std::string name;
        std::ifstream(task.path() / "comm") >> name;
        if (name == "diomp-proxy") {
            std::int64_t run = -1;
            std::ifstream(task.path() / "schedstat") >> run;
            return run;
        }
    }
    return -1;
}

TEST(rings, the_proxy_sleeps_while_no_region_runs) {
    {
        region const inside;
        std::int64_t const before = proxy_time_ns();
        ASSERT_GE(before, 0);
        while (proxy_time_ns() == before) {
            std::this_thread::yield(); // it polls
        }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20)); // until it has seen the end
    std::int64_t const before = proxy_time_ns();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_EQ(proxy_time_ns(), before);
    meet();
}

TEST(rings, rules_of_the_vendor_are_kept) { EXPECT_STREQ(scripted::complaints(), ""); }

} // namespace
