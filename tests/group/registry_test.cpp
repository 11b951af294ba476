// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "group/registry.h"
#include "support/thread_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace diomp::group {
namespace {

using test::thread_groups;
using test::thread_ranks;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr sync::call_signature barrier{.what = sync::operation::barrier};

std::vector<int> ranks_of(const group &of) {
    std::vector<int> ranks;
    for (world_rank const each : of.members()) {
        ranks.push_back(each.value());
    }
    return ranks;
}

/// The group behind a handle that must be good.
group &expect_group(group_registry &registry, const result<ompx_group_t> &handle) {
    if (!handle.ok()) {
        ADD_FAILURE() << handle.failure().message();
        return registry.world();
    }
    return *registry.find(handle.value()).value();
}

void expect_meets(group &own, world_rank self) {
    auto const call_lock = own.lock_calls();
    EXPECT_TRUE(own.arrive_and_wait(barrier, {self.index(), own.size()}).ok());
    for (std::size_t member = 0; member < own.size(); ++member) {
        EXPECT_EQ(own.payload_of(member)[0], own.members()[member].index());
        EXPECT_EQ(own.payload_of(member)[1], own.size());
    }
}

TEST(group_registry, makes_groups_from_lists_in_their_order) {
    thread_groups job(4);
    job.run([&](world_rank self) {
        group_registry &registry = job.registry(self);
        expect_meets(registry.world(), self);
        if (self.value() == 1) {
            return;
        }
        auto const made = registry.create(std::vector{3, 0, 2});
        group &own = expect_group(registry, made);
        EXPECT_THAT(ranks_of(own), ElementsAre(3, 0, 2));
        EXPECT_EQ(own.members()[own.self().index()], self);
        for (int i = 0; i < 50; ++i) {
            expect_meets(own, self);
        }
        EXPECT_TRUE(registry.free(made.value()).ok());
        EXPECT_FALSE(registry.find(made.value()).ok());
    });
    for (int rank = 0; rank < 4; ++rank) {
        EXPECT_EQ(job.registry(world_rank{rank}).num_groups(), 0U);
        EXPECT_EQ(job.space(world_rank{rank}).num_blocks(), 1U);
    }
}

TEST(group_registry, many_groups_come_and_go) {
    thread_groups job(3);
    job.run([&](world_rank self) {
        group_registry &registry = job.registry(self);
        for (int round = 0; round < 400; ++round) {
            auto const all = registry.create(std::vector{2, 1, 0});
            expect_meets(expect_group(registry, all), self);
            // Overlapping pairs: (0 1), (1 2), (2 0) in an order without a cycle of waiting.
            for (auto const &pair : {std::vector{0, 1}, std::vector{1, 2}, std::vector{2, 0}}) {
                if (std::ranges::find(pair, self.value()) != pair.end()) {
                    auto const two = registry.create(pair);
                    expect_meets(expect_group(registry, two), self);
                    EXPECT_TRUE(registry.free(two.value()).ok());
                }
            }
            EXPECT_TRUE(registry.free(all.value()).ok());
        }
        EXPECT_EQ(registry.num_groups(), 0U);
        EXPECT_EQ(job.space(self).num_blocks(), 1U);
    });
}

TEST(group_registry, several_threads_make_different_groups_at_once) {
    thread_groups job(3);
    job.run([&](world_rank self) {
        group_registry &registry = job.registry(self);
        std::vector<std::thread> threads;
        for (auto const &list : {std::vector{0, 1, 2}, std::vector{0, 1}, std::vector{1, 2},
                                 std::vector{0, 2}, std::vector{self.value()}}) {
            if (std::ranges::find(list, self.value()) == list.end()) {
                continue;
            }
            threads.emplace_back([&registry, list, self] {
                for (int round = 0; round < 50; ++round) {
                    auto const made = registry.create(list);
                    group &own = expect_group(registry, made);
                    EXPECT_EQ(ranks_of(own), list);
                    expect_meets(own, self);
                    EXPECT_TRUE(registry.free(made.value()).ok());
                }
            });
        }
        for (std::thread &each : threads) {
            each.join();
        }
    });
}

TEST(group_registry, split_orders_by_key_then_rank) {
    thread_groups job(6);
    job.run([&](world_rank self) {
        group_registry &registry = job.registry(self);
        int const color = self.value() == 5 ? -1 : self.value() % 2;
        auto const half = registry.split(sync::operation::group_split, ompx_group_world, color,
                                         self.value() < 2 ? 7 : -3);
        if (self.value() == 5) {
            EXPECT_EQ(half.value(), OMPX_GROUP_NONE);
            return;
        }
        group &own = expect_group(registry, half);
        EXPECT_EQ(ranks_of(own),
                  self.value() % 2 == 0 ? (std::vector{2, 4, 0}) : (std::vector{3, 1}));
        expect_meets(own, self);
        // Split of a split; keys are equal, so the order of the parent stays.
        auto const again = registry.split(sync::operation::group_split, half.value(), 0, 0);
        EXPECT_EQ(ranks_of(expect_group(registry, again)), ranks_of(own));
        EXPECT_TRUE(registry.free(half.value()).ok());
        expect_meets(expect_group(registry, again), self);
        EXPECT_TRUE(registry.free(again.value()).ok());
        EXPECT_EQ(job.space(self).num_blocks(), 1U);
    });
}

TEST(group_registry, merge_keeps_the_order_of_both) {
    thread_groups job(5);
    job.run([&](world_rank self) {
        group_registry &registry = job.registry(self);
        std::vector const list_a{3, 1};
        std::vector const list_b{0, 1, 4};
        auto const join = [&](const std::vector<int> &list) {
            return std::ranges::find(list, self.value()) == list.end()
                       ? OMPX_GROUP_NONE
                       : registry.create(list).value();
        };
        ompx_group_t const a = join(list_a);
        ompx_group_t const b = join(list_b);
        if (a == OMPX_GROUP_NONE && b == OMPX_GROUP_NONE) {
            EXPECT_EQ(registry.merge(a, b).failure().code(), OMPX_ERR_ARG);
        } else {
            auto const both = registry.merge(a, b);
            group &own = expect_group(registry, both);
            EXPECT_THAT(ranks_of(own), ElementsAre(3, 1, 0, 4));
            expect_meets(own, self);
        }
        // With the world: everybody knows one of the two.
        auto const whole = registry.merge(a, ompx_group_world);
        EXPECT_THAT(ranks_of(expect_group(registry, whole)), ElementsAre(3, 1, 0, 2, 4));
    });
}

TEST(group_registry, merge_of_strangers_is_an_error_on_all) {
    thread_groups job(4);
    job.run([&](world_rank self) {
        group_registry &registry = job.registry(self);
        bool const low = self.value() < 2;
        ompx_group_t const half =
            registry.split(sync::operation::group_split, ompx_group_world, low ? 0 : 1, 0).value();
        auto const merged =
            low ? registry.merge(half, OMPX_GROUP_NONE) : registry.merge(OMPX_GROUP_NONE, half);
        ASSERT_FALSE(merged.ok());
        EXPECT_EQ(merged.failure().code(), OMPX_ERR_ARG);
        EXPECT_THAT(merged.failure().message(), HasSubstr("no common member"));
        expect_meets(*registry.find(half).value(), self);
    });
}

TEST(group_registry, rejects_bad_lists) {
    thread_groups job(3);
    group_registry &registry = job.registry(world_rank{0});
    auto const code = [&](std::vector<int> list) { return registry.create(list).failure().code(); };
    EXPECT_EQ(code({}), OMPX_ERR_ARG);
    EXPECT_EQ(code({0, 1, 0}), OMPX_ERR_ARG);
    EXPECT_EQ(code({0, 3}), OMPX_ERR_RANK);
    EXPECT_EQ(code({-1, 0}), OMPX_ERR_RANK);
    EXPECT_EQ(code({1, 2}), OMPX_ERR_ARG);
    EXPECT_THAT(registry.create(std::vector{0, 7}).failure().message(),
                HasSubstr("there is no rank 7, the world has 3"));
}

TEST(group_registry, rejects_garbage_handles) {
    thread_groups job(1);
    group_registry &registry = job.registry(world_rank{0});
    ompx_group_t const alone = registry.create(std::vector{0}).value();
    int something = 0;
    for (ompx_group_t const bad :
         {reinterpret_cast<ompx_group_t>(&something), reinterpret_cast<ompx_group_t>(1),
          reinterpret_cast<ompx_group_t>(reinterpret_cast<std::uintptr_t>(alone) + 1),
          reinterpret_cast<ompx_group_t>(reinterpret_cast<std::uintptr_t>(alone) + 0x10000),
          OMPX_GROUP_NONE}) {
        EXPECT_EQ(registry.find(bad).failure().code(), OMPX_ERR_ARG);
        EXPECT_EQ(registry.free(bad).failure().code(), OMPX_ERR_ARG);
    }
    EXPECT_EQ(registry.find(ompx_group_world).value(), &registry.world());
    EXPECT_EQ(registry.free(ompx_group_world).failure().code(), OMPX_ERR_ARG);
    EXPECT_TRUE(registry.free(alone).ok());
    EXPECT_EQ(registry.free(alone).failure().code(), OMPX_ERR_ARG);
}

TEST(group_registry, another_order_is_a_mismatch_on_all) {
    thread_groups job(3);
    job.run([&](world_rank self) {
        group_registry &registry = job.registry(self);
        auto const made =
            registry.create(self.value() == 2 ? std::vector{2, 1, 0} : std::vector{0, 1, 2});
        ASSERT_FALSE(made.ok());
        EXPECT_EQ(made.failure().code(), OMPX_ERR_MISMATCH);
        EXPECT_EQ(job.space(self).num_blocks(), 1U);
        expect_meets(expect_group(registry, registry.create(std::vector{0, 1, 2})), self);
    });
}

TEST(group_registry, lack_of_space_is_told_to_all_and_leaks_nothing) {
    // Room for the world and three more.
    thread_groups job(2, 5 * sizeof(member_block) - 64);
    job.run([&](world_rank self) {
        group_registry &registry = job.registry(self);
        for (int round = 0; round < 3; ++round) {
            // Rank 0 has one group more than rank 1.
            std::vector<ompx_group_t> made;
            if (self.value() == 0) {
                made.push_back(registry.create(std::vector{0}).value());
            }
            for (int i = 0; i < 2; ++i) {
                made.push_back(registry.create(std::vector{0, 1}).value());
            }
            auto const one_more = registry.create(std::vector{1, 0});
            ASSERT_FALSE(one_more.ok());
            EXPECT_EQ(one_more.failure().code(), OMPX_ERR_NOMEM);
            EXPECT_THAT(one_more.failure().message(), HasSubstr("rank 0 has no space"));
            auto const part = registry.split(sync::operation::group_split, ompx_group_world, 4, 0);
            ASSERT_FALSE(part.ok());
            EXPECT_EQ(part.failure().code(), OMPX_ERR_NOMEM);
            for (ompx_group_t const each : made) {
                EXPECT_TRUE(registry.free(each).ok());
            }
            EXPECT_EQ(job.space(self).num_blocks(), 1U);
        }
    });
}

TEST(group_registry, a_creation_that_timed_out_can_be_taken_up_again) {
    thread_groups job(std::make_unique<thread_ranks>(
        2, std::size_t{1} << 20,
        messaging::engine_options{.spin_count = 1, .timeout_s = 1, .progress_thread = false}));
    std::atomic<bool> gave_up{false};
    job.run([&](world_rank self) {
        group_registry &registry = job.registry(self);
        if (self.value() == 0) {
            auto const made = registry.create(std::vector{0, 1});
            ASSERT_FALSE(made.ok());
            EXPECT_EQ(made.failure().code(), OMPX_ERR_TIMEOUT);
            EXPECT_THAT(made.failure().message(),
                        HasSubstr("waiting for rank 1 in ompx_group_create(ranks 0, 1)"));
            gave_up = true;
        } else {
            while (!gave_up) {
                std::this_thread::yield();
            }
        }
        expect_meets(expect_group(registry, registry.create(std::vector{0, 1})), self);
    });
}

TEST(group_registry, disagreement_in_split_leaks_nothing) {
    thread_groups job(2);
    job.run([&](world_rank self) {
        group_registry &registry = job.registry(self);
        if (self.value() == 0) {
            EXPECT_EQ(registry.split(sync::operation::group_split, ompx_group_world, 0, 0)
                          .failure()
                          .code(),
                      OMPX_ERR_MISMATCH);
        } else {
            auto const call_lock = registry.world().lock_calls();
            EXPECT_EQ(registry.world().arrive_and_wait(barrier).failure().code(),
                      OMPX_ERR_MISMATCH);
        }
        EXPECT_EQ(job.space(self).num_blocks(), 1U);
    });
}

} // namespace
} // namespace diomp::group
