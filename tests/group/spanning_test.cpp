// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Groups whose members are on several nodes, with threads as ranks that reach only some of the
// others' memory.
#include "base/sanitizer.h"
#include "group/registry.h"
#include "support/thread_groups.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

namespace diomp::group {
namespace {

using sync::operation;
using test::thread_groups;
using test::thread_ranks;
using testing::HasSubstr;

constexpr sync::call_signature barrier{.what = operation::barrier};
constexpr std::size_t slot_bytes = std::size_t{4} << 20;

using nodes = std::vector<std::int32_t>;

class spanning : public testing::TestWithParam<nodes> {
protected:
    static std::unique_ptr<thread_ranks> make_ranks(double timeout_s) {
        return std::make_unique<thread_ranks>(static_cast<int>(GetParam().size()), slot_bytes,
                                              messaging::engine_options{.spin_count = 20,
                                                                        .timeout_s = timeout_s,
                                                                        .warn_after_s = 30,
                                                                        .progress_thread = false});
    }
    /// The last rank of the job, and whether it is `self`.
    static int last() { return static_cast<int>(GetParam().size()) - 1; }
};

group &expect_group(group_registry &registry, const result<ompx_group_t> &handle) {
    if (!handle.ok()) {
        ADD_FAILURE() << handle.failure().message();
        return registry.world();
    }
    return *registry.find(handle.value()).value();
}

std::vector<int> ranks_of(const group &of) {
    std::vector<int> ranks;
    for (world_rank const each : of.members()) {
        ranks.push_back(each.value());
    }
    return ranks;
}

/// With payloads, and plain.
void expect_meets(group &own, world_rank self) {
    auto const call_lock = own.lock_calls();
    status const met = own.arrive_and_wait(barrier, {self.index(), own.size()});
    ASSERT_TRUE(met.ok()) << met.failure().message();
    for (std::size_t member = 0; member < own.size(); ++member) {
        EXPECT_EQ(own.payload_of(member)[0], own.members()[member].index());
        EXPECT_EQ(own.payload_of(member)[1], own.size());
    }
    EXPECT_TRUE(own.arrive_and_wait(barrier).ok());
}

/// Each call returns when all members have begun it. `entered`: calls of all members so far.
void expect_to_wait_for_all(group &world, const sync::call_signature &call, int num_calls,
                            std::atomic<int> &entered) {
    for (int round = 1; round <= num_calls; ++round) {
        entered.fetch_add(1);
        ASSERT_TRUE(world.arrive_and_wait(call).ok());
        EXPECT_GE(entered.load(), round * static_cast<int>(world.size()));
    }
}

TEST_P(spanning, nobody_leaves_a_barrier_before_all_have_come) {
    thread_groups job(make_ranks(20), 0, GetParam());
    std::atomic<int> entered{0};
    job.run([&](world_rank self) {
        expect_to_wait_for_all(job.registry(self).world(), barrier, 200, entered);
    });
}

TEST_P(spanning, all_learn_who_objects) {
    thread_groups job(make_ranks(20), 0, GetParam());
    job.run([&](world_rank self) {
        group &world = job.registry(self).world();
        for (int who = -1; who < job.size(); ++who) {
            auto const agreed = world.agree(
                barrier, self.value() == who ? std::optional<std::uint64_t>(77) : std::nullopt);
            ASSERT_TRUE(agreed.ok());
            ASSERT_EQ(agreed.value().has_value(), who >= 0);
            if (who >= 0) {
                EXPECT_EQ(agreed.value()->member, static_cast<std::uint32_t>(who));
                EXPECT_EQ(agreed.value()->detail, 77U);
            }
        }
    });
}

// A rank that waits for 20 ms, by a clock that may be 4 ms behind, asks its peer what it does, and
// may then name another two of the ranks that disagree.
TEST_P(spanning, different_calls_are_told_on_all_in_the_same_words) {
    constexpr std::chrono::milliseconds longest_wait_without_a_probe{15};
    thread_groups job(make_ranks(20), 0, GetParam());
    std::vector<std::atomic<bool>> has_probed(static_cast<std::size_t>(job.size()));
    job.run([&](world_rank self) {
        group &world = job.registry(self).world();
        for (int odd = 0; odd < job.size(); ++odd) {
            bool const is_odd = self.value() == odd;
            auto const begin = std::chrono::steady_clock::now();
            status const met = world.arrive_and_wait(
                {.what = operation::free_memory, .amount = is_odd ? 8U : 16U});
            if (std::chrono::steady_clock::now() - begin >= longest_wait_without_a_probe) {
                has_probed[static_cast<std::size_t>(odd)] = true;
            }
            expect_meets(world, self);
            ASSERT_FALSE(met.ok());
            EXPECT_EQ(met.failure().code(), OMPX_ERR_MISMATCH);
            std::string const message = met.failure().message();
            if (has_probed[static_cast<std::size_t>(odd)]) {
                EXPECT_THAT(message,
                            HasSubstr(fmt::format("rank {} made collective free(offset=8)", odd)));
                EXPECT_THAT(message, HasSubstr("made collective free(offset=16)"));
                continue;
            }
            EXPECT_EQ(message, odd == 0
                                   ? "ranks disagree about a collective call: rank 0 made "
                                     "collective free(offset=8), rank 1 made collective "
                                     "free(offset=16)"
                                   : fmt::format("ranks disagree about a collective call: rank 0 "
                                                 "made collective free(offset=16), rank {} made "
                                                 "collective free(offset=8)",
                                                 odd));
        }
    });
}

TEST_P(spanning, who_is_late_is_named_on_all_and_meets_later) {
    // What follows has to be done in that time, by up to 18 threads on a core or two.
    bool const is_slow = DIOMP_THREAD_SANITIZER || GetParam().size() > 9;
    thread_groups job(make_ranks(is_slow ? 2 : 0.5), 0, GetParam());
    std::atomic<int> gave_up{0};
    job.run([&](world_rank self) {
        group &world = job.registry(self).world();
        if (self.value() != last()) {
            status const met = world.arrive_and_wait(barrier);
            ASSERT_FALSE(met.ok());
            EXPECT_EQ(met.failure().code(), OMPX_ERR_TIMEOUT);
            EXPECT_THAT(met.failure().message(),
                        HasSubstr(fmt::format("waiting for rank {} in ompx_barrier()", last())));
            gave_up.fetch_add(1);
        } else {
            while (gave_up.load() < last()) {
                std::this_thread::yield();
            }
            EXPECT_TRUE(world.arrive_and_wait(barrier).ok());
        }
        expect_meets(world, self);
    });
}

// On many nodes these calls use another pattern than the calls between them.
TEST_P(spanning, the_last_call_of_a_job_waits_for_all_and_names_another_call) {
    thread_groups job(make_ranks(20), 0, GetParam());
    std::atomic<int> entered{0};
    job.run([&](world_rank self) {
        group &world = job.registry(self).world();
        expect_to_wait_for_all(world, {.what = operation::finalize}, 20, entered);
        for (int odd = 0; odd < job.size(); odd += 3) {
            status const met = world.arrive_and_wait(
                {.what = self.value() == odd ? operation::barrier : operation::finalize});
            ASSERT_FALSE(met.ok());
            EXPECT_EQ(met.failure().code(), OMPX_ERR_MISMATCH) << met.failure().message();
            EXPECT_THAT(met.failure().message(),
                        HasSubstr(fmt::format("rank {} made ompx_barrier()", odd)));
            expect_meets(world, self);
        }
    });
}

TEST_P(spanning, groups_come_and_go) {
    thread_groups job(make_ranks(20), 0, GetParam());
    job.run([&](world_rank self) {
        group_registry &registry = job.registry(self);
        std::vector<int> backwards;
        for (int rank = job.size() - 1; rank >= 0; --rank) {
            backwards.push_back(rank);
        }
        for (int round = 0; round < 20; ++round) {
            auto const all = registry.create(backwards);
            group &own = expect_group(registry, all);
            EXPECT_EQ(ranks_of(own), backwards);
            expect_meets(own, self);
            auto const half =
                registry.split(sync::operation::group_split, all.value(), self.value() % 2, 0);
            expect_meets(expect_group(registry, half), self);
            expect_meets(own, self);
            EXPECT_TRUE(registry.free(half.value()).ok());
            EXPECT_TRUE(registry.free(all.value()).ok());
        }
        EXPECT_EQ(registry.num_groups(), 0U);
        EXPECT_EQ(job.space(self).num_blocks(), 1U);
    });
}

TEST_P(spanning, merge_tells_the_lists_across_nodes) {
    thread_groups job(make_ranks(20), 0, GetParam());
    job.run([&](world_rank self) {
        group_registry &registry = job.registry(self);
        // The last rank is in both: {last, 0} and {1, ..., last}.
        bool const is_last = self.value() == last();
        auto const join = [&](std::vector<int> list) {
            return std::ranges::find(list, self.value()) == list.end()
                       ? OMPX_GROUP_NONE
                       : registry.create(list).value();
        };
        std::vector<int> others;
        std::vector<int> expected{last(), 0};
        for (int rank = 1; rank <= last(); ++rank) {
            others.push_back(rank);
            if (rank != last()) {
                expected.push_back(rank);
            }
        }
        ompx_group_t const a = is_last || self.value() == 0 ? join({last(), 0}) : OMPX_GROUP_NONE;
        ompx_group_t const b = join(others);
        auto const both = registry.merge(a, b);
        group &own = expect_group(registry, both);
        EXPECT_EQ(ranks_of(own), expected);
        expect_meets(own, self);
    });
}

TEST_P(spanning, groups_of_several_threads_do_not_disturb_each_other) {
    thread_groups job(make_ranks(20), 0, GetParam());
    job.run([&](world_rank self) {
        group_registry &registry = job.registry(self);
        std::vector<std::thread> threads;
        for (int without = -1; without < std::min(job.size(), 3); ++without) {
            std::vector<int> list;
            for (int rank = 0; rank < job.size(); ++rank) {
                if (rank != without) {
                    list.push_back(rank);
                }
            }
            if (without == self.value()) {
                continue;
            }
            threads.emplace_back([&registry, list, self] {
                auto const made = registry.create(list);
                group &own = expect_group(registry, made);
                for (int round = 0; round < 30; ++round) {
                    expect_meets(own, self);
                }
                EXPECT_TRUE(registry.free(made.value()).ok());
            });
        }
        for (std::thread &each : threads) {
            each.join();
        }
    });
}

INSTANTIATE_TEST_SUITE_P(layouts, spanning,
                         testing::Values(nodes{0, 1}, nodes{0, 0, 1}, nodes{0, 1, 0, 1},
                                         nodes{0, 0, 1, 1}, nodes{0, 1, 2}, nodes{0, 1, 2, 3, 4},
                                         nodes{2, 1, 1, 0, 2, 0, 2},
                                         nodes{0, 0, 0, 1, 1, 2, 2, 2, 3}));
// Trees of 16 and 17 nodes.
INSTANTIATE_TEST_SUITE_P(
    trees, spanning,
    testing::Values(nodes{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
                    nodes{16, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 3}));

} // namespace
} // namespace diomp::group
