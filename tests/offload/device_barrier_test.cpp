// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The barrier of regions on GPUs, on a processor: each rank's device is a thread, its segment an
// array that all others map.
#include "diomp/device_calls.h"
#include "offload/ring_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using testing::HasSubstr;

constexpr std::size_t max_ranks = 16;
constexpr std::size_t num_words = DIOMP_BARRIER_WORDS * std::size_t{DIOMP_BARRIER_GROUPS};

/// The device of one rank.
struct scripted_rank {
    alignas(64) std::array<std::uint64_t, num_words + max_ranks> segment{};
    std::vector<diomp_group> groups{DIOMP_BARRIER_GROUPS};
    std::vector<diomp_peer> peers;
    std::int32_t broken = 0;
    diomp_device_error error{};
    diomp_endpoint own{};

    std::uint64_t *cells() { return &segment[num_words]; }
};

class scripted_world {
public:
    explicit scripted_world(std::size_t num_ranks) : ranks_(num_ranks) {
        for (std::size_t rank = 0; rank < num_ranks; ++rank) {
            ranks_[rank] = std::make_unique<scripted_rank>();
        }
        for (std::size_t rank = 0; rank < num_ranks; ++rank) {
            scripted_rank &each = *ranks_[rank];
            for (auto const &peer : ranks_) {
                each.peers.push_back({address(peer->segment.data()), ~std::uint64_t{0}, 0, 0});
            }
            each.own.version = DIOMP_ENDPOINT_VERSION;
            each.own.rank = static_cast<std::int32_t>(rank);
            each.own.num_ranks = static_cast<std::int32_t>(num_ranks);
            each.own.base = address(each.segment.data());
            each.own.segment_bytes = each.own.symmetric_end = each.own.mapped_begin =
                sizeof(each.segment);
            each.own.peers = each.peers.data();
            each.own.broken = &each.broken;
            each.own.error = &each.error;
            each.own.barrier_words = each.segment.data();
            each.own.groups = each.groups.data();
        }
    }

    scripted_rank &operator[](std::size_t rank) { return *ranks_[rank]; }
    std::string message(std::size_t rank) {
        diomp_device_error &error = ranks_[rank]->error;
        auto const found =
            diomp::offload::describe_region_error(error, 4, static_cast<int>(ranks_.size()));
        ++error.taken;
        return std::string(found.function) + "(" + found.arguments + "): " + found.why.message();
    }
    int barrier(std::size_t rank, const void *group = nullptr) {
        return diomp_device_barrier(&ranks_[rank]->own, group);
    }
    /// As the devices have filled their tables after the replies of their proxies. The slot of a
    /// group's words is another one at each member, and has had another number of groups before.
    const void *create_group(std::size_t number, const std::vector<std::size_t> &members) {
        auto const slot = [number](std::size_t rank) { return 1 + (number * 7 + rank * 13) % 255; };
        auto const first = [slot](std::size_t rank) { return slot(rank) << DIOMP_BARRIER_BITS; };
        auto const *const handle = reinterpret_cast<const void *>(0xd10b + number * 2);
        std::size_t const size = members.size();
        for (std::size_t i = 0; i < size; ++i) {
            diomp_endpoint &own = ranks_[members[i]]->own;
            diomp_group *const entry = diomp_group_entry(&own, address(handle));
            entry->handle = address(handle);
            entry->size = size;
            entry->first = first(members[i]);
            entry->words = own.barrier_words + slot(members[i]) * DIOMP_BARRIER_WORDS;
            std::size_t round = 0;
            for (std::size_t distance = 1; distance < size; distance *= 2, ++round) {
                std::size_t const to = members[(i + distance) % size];
                entry->rounds[round] = {
                    static_cast<int>(to), static_cast<int>(members[(i + size - distance) % size]),
                    own.barrier_words + slot(to) * DIOMP_BARRIER_WORDS + round, first(to)};
            }
        }
        return handle;
    }

private:
    static std::uint64_t address(const void *at) { return reinterpret_cast<std::uintptr_t>(at); }

    std::vector<std::unique_ptr<scripted_rank>> ranks_;
};

class device_barrier : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(ranks, device_barrier, testing::Values(1, 2, 3, 4, 5, 8, 11));

TEST_P(device_barrier, no_rank_leaves_before_all_have_come_and_put) {
    constexpr std::uint64_t num_rounds = 100;
    std::size_t const num_ranks = GetParam();
    scripted_world world(num_ranks);
    std::atomic<std::uint64_t> arrivals{0};
    ring_tests::run_threads(static_cast<int>(num_ranks), [&](int number) {
        auto const me = static_cast<std::size_t>(number);
        scripted_rank &mine = world[me];
        for (std::uint64_t round = 1; round <= num_rounds; ++round) {
            std::uint64_t const word = round * 100 + me;
            for (std::size_t rank = 0; rank < num_ranks; ++rank) {
                ASSERT_EQ(diomp_device_put(&mine.own, DIOMP_CALL_PUT, static_cast<int>(rank),
                                           mine.cells() + me, &word, sizeof(word), {0, 1}, nullptr),
                          0);
            }
            arrivals.fetch_add(1, std::memory_order_relaxed);
            ASSERT_EQ(world.barrier(me), 0);
            ASSERT_GE(arrivals.load(std::memory_order_relaxed), round * num_ranks);
            for (std::size_t rank = 0; rank < num_ranks; ++rank) {
                ASSERT_EQ(mine.cells()[rank], round * 100 + rank);
            }
            ASSERT_EQ(world.barrier(me), 0);
        }
    });
    EXPECT_EQ(world[0].own.num_barriers, 2 * num_rounds);
}

TEST(device_barriers, one_that_has_timed_out_goes_on_with_the_next_call) {
    constexpr std::size_t num_ranks = 3;
    scripted_world world(num_ranks);
    world[0].own.timeout_ns = 30'000'000;
    EXPECT_EQ(world.barrier(0), OMPX_ERR_TIMEOUT);
    EXPECT_THAT(world.message(0), HasSubstr("ompx_barrier(group=world): in a target region"));
    --world[0].error.taken;
    EXPECT_THAT(world.message(0), HasSubstr("timed out in barrier 1 of this device: no signal of "
                                            "rank 2"));
    EXPECT_EQ(world[0].own.num_barriers, 0U);
    world[0].own.timeout_ns = 0;
    for (std::uint64_t number = 1; number <= 2; ++number) {
        ring_tests::run_threads(num_ranks, [&](int rank) {
            EXPECT_EQ(world.barrier(static_cast<std::size_t>(rank)), 0);
        });
        EXPECT_EQ(world[0].own.num_barriers, number);
    }
}

TEST(device_barriers, end_when_the_job_is_broken) {
    scripted_world world(2);
    std::thread runtime(
        [&] { __atomic_store_n(&world[1].broken, OMPX_ERR_PEER, __ATOMIC_RELEASE); });
    EXPECT_EQ(world.barrier(1), OMPX_ERR_PEER);
    runtime.join();
    EXPECT_THAT(world.message(1), HasSubstr("the job is broken"));
}

/// Of the even ranks, of all in another order, and the world's, by one thread of each rank; then
/// two groups at the same time by two threads of each rank.
TEST_P(device_barrier, of_groups_wait_for_their_members_only) {
    constexpr int num_rounds = 50;
    std::size_t const num_ranks = GetParam();
    scripted_world world(num_ranks);
    std::vector<std::size_t> even;
    std::vector<std::size_t> reversed;
    for (std::size_t rank = 0; rank < num_ranks; ++rank) {
        reversed.insert(reversed.begin(), rank);
        if (rank % 2 == 0) {
            even.push_back(rank);
        }
    }
    const void *const of_even = world.create_group(1, even);
    const void *const of_all = world.create_group(2, reversed);
    std::atomic<std::size_t> even_arrivals{0};
    std::atomic<std::size_t> all_arrivals{0};
    ring_tests::run_threads(static_cast<int>(num_ranks), [&](int number) {
        auto const me = static_cast<std::size_t>(number);
        for (std::size_t round = 1; round <= num_rounds; ++round) {
            if (me % 2 == 0) {
                even_arrivals.fetch_add(1, std::memory_order_relaxed);
                ASSERT_EQ(world.barrier(me, of_even), 0);
                ASSERT_GE(even_arrivals.load(std::memory_order_relaxed), round * even.size());
            }
            all_arrivals.fetch_add(1, std::memory_order_relaxed);
            ASSERT_EQ(world.barrier(me, of_all), 0);
            ASSERT_GE(all_arrivals.load(std::memory_order_relaxed), round * num_ranks);
            ASSERT_EQ(world.barrier(me), 0);
        }
    });
    even_arrivals = all_arrivals = 0;
    ring_tests::run_threads(static_cast<int>(2 * num_ranks), [&](int number) {
        auto const me = static_cast<std::size_t>(number) / 2;
        bool const is_first = number % 2 == 0;
        std::size_t const members = is_first ? num_ranks : even.size();
        std::atomic<std::size_t> &arrivals = is_first ? all_arrivals : even_arrivals;
        for (std::size_t round = 1; (is_first || me % 2 == 0) && round <= num_rounds; ++round) {
            arrivals.fetch_add(1, std::memory_order_relaxed);
            ASSERT_EQ(world.barrier(me, is_first ? of_all : of_even), 0);
            ASSERT_GE(arrivals.load(std::memory_order_relaxed), round * members);
        }
    });
    EXPECT_EQ(world[0].own.num_barriers, std::uint64_t{num_rounds});
}

TEST(device_barriers, of_a_group_that_has_timed_out_goes_on_with_its_next_call) {
    scripted_world world(3);
    const void *const group = world.create_group(1, {2, 0});
    world[0].own.timeout_ns = 30'000'000;
    EXPECT_EQ(world.barrier(0, group), OMPX_ERR_TIMEOUT);
    EXPECT_THAT(world.message(0), HasSubstr("timed out in barrier 1 of this device: no signal of "
                                            "rank 2"));
    world[0].own.timeout_ns = 0;
    ring_tests::run_threads(3, [&](int rank) { // another barrier in between
        EXPECT_EQ(world.barrier(static_cast<std::size_t>(rank)), 0);
    });
    ring_tests::run_threads(
        2, [&](int number) { EXPECT_EQ(world.barrier(number == 0 ? 0 : 2, group), 0); });
    EXPECT_EQ(
        diomp_group_entry(&world[0].own, reinterpret_cast<std::uintptr_t>(group))->num_barriers,
        1U);
}

/// Two handles whose entries begin at the same one.
TEST(device_barriers, entries_of_freed_groups_are_used_again) {
    scripted_world world(1);
    diomp_endpoint &own = world[0].own;
    diomp_group *const first = diomp_group_entry(&own, 1);
    std::uint64_t other = 2;
    while (diomp_group_entry(&own, other) != first) {
        ++other;
    }
    std::uint64_t third = other + 1;
    while (diomp_group_entry(&own, third) != first) {
        ++third;
    }
    first->handle = 1;
    diomp_group *const second = diomp_group_entry(&own, other);
    ASSERT_NE(second, first);
    second->handle = other;
    first->handle = DIOMP_GROUP_FREED;
    EXPECT_EQ(diomp_group_entry(&own, other), second);
    EXPECT_EQ(diomp_group_entry(&own, third), first);
    EXPECT_EQ(diomp_group_entry(&own, 1), first);
    for (diomp_group &each : world[0].groups) {
        if (&each != first && &each != second) {
            each.handle = 1'000'000;
        }
    }
    EXPECT_EQ(diomp_group_entry(&own, third), first); // full, but for the freed one
    first->handle = third;
    EXPECT_EQ(diomp_group_entry(&own, other), second);
    EXPECT_EQ(diomp_group_entry(&own, third + 1'000'000), nullptr);
}

TEST(device_barriers, unknown_groups_and_ranks_without_memory_are_errors) {
    scripted_world world(2);
    int group = 0;
    EXPECT_EQ(world.barrier(0, &group), OMPX_ERR_UNSUPPORTED); // no ring to ask for it
    EXPECT_THAT(world.message(0), HasSubstr("can neither load nor store"));
    for (diomp_group &each : world[0].groups) {
        EXPECT_EQ(each.handle, 0U);
        each.handle = each.size = 1;
    }
    EXPECT_EQ(diomp_group_entry(&world[0].own, 0xd10b), nullptr);
    world[1].peers[0].base = 0; // not mapped, and no ring
    EXPECT_EQ(world.barrier(1), OMPX_ERR_UNSUPPORTED);
    EXPECT_THAT(world.message(1), HasSubstr("can neither load nor store"));
    world[0].own.barrier_words = nullptr;
    EXPECT_EQ(world.barrier(0), OMPX_ERR_UNSUPPORTED);
    EXPECT_THAT(world.message(0), HasSubstr("can neither load nor store"));
    EXPECT_EQ(world[0].segment[0] + world[1].segment[0], 0U);
}

} // namespace
