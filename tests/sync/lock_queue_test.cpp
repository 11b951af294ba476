// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The queue at a lock's target, driven message by message.
#include "messaging/call.h"
#include "support/thread_ranks.h"
#include "sync/lock.h"

#include <gtest/gtest.h>

#include <atomic>

namespace {

using namespace diomp;

struct world {
    explicit world(int num_ranks, double timeout_s = 60,
                   const std::vector<std::int32_t> &node_of = {})
        : ranks(num_ranks, std::size_t{1} << 20,
                {.spin_count = 20,
                 .timeout_s = timeout_s,
                 .warn_after_s = 30,
                 .progress_thread = false}) {
        ranks.place_on_nodes(node_of);
        for (int rank = 0; rank < num_ranks; ++rank) {
            calls.push_back(
                std::make_unique<messaging::call_service>(ranks.engine(world_rank{rank})));
            locks.push_back(std::make_unique<sync::locks>(ranks.engine(world_rank{rank}),
                                                          *calls.back(), world_rank{rank}));
        }
    }
    /// Serves rank 0 until it has handled a message.
    void serve_target() {
        while (!ranks.engine(world_rank{0}).poll()) {
        }
    }

    test::thread_ranks ranks;
    std::vector<std::unique_ptr<messaging::call_service>> calls;
    std::vector<std::unique_ptr<sync::locks>> locks;
};

constexpr auto space = sync::lock_space::ranks;

TEST(lock_queue, grants_in_the_order_in_which_requests_arrived) {
    world all(5);
    ASSERT_TRUE(all.locks[0]->acquire(world_rank{0}, space).ok());
    std::vector<int> granted;
    std::atomic<int> num_done{0};
    std::vector<std::thread> waiting;
    std::vector<int> const arrival{3, 1, 4, 2};
    for (int const rank : arrival) {
        waiting.emplace_back([&, rank] {
            ASSERT_TRUE(
                all.locks[static_cast<std::size_t>(rank)]->acquire(world_rank{0}, space).ok());
            granted.push_back(rank); // under the lock
            ASSERT_TRUE(
                all.locks[static_cast<std::size_t>(rank)]->release(world_rank{0}, space).ok());
            ++num_done;
        });
        all.serve_target(); // this request is in the queue before the next one is made
    }
    ASSERT_TRUE(all.locks[0]->release(world_rank{0}, space).ok());
    while (num_done < 4) {
        all.ranks.engine(world_rank{0}).poll(); // the own release, then one of each waiter
    }
    for (auto &thread : waiting) {
        thread.join();
    }
    EXPECT_EQ(granted, arrival);
}

TEST(lock_queue, a_free_lock_of_the_node_takes_no_message) {
    world all(2);
    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(all.locks[1]->acquire(world_rank{0}, space).ok());
        EXPECT_FALSE(all.locks[0]->try_acquire(world_rank{0}, space).value());
        ASSERT_TRUE(all.locks[1]->release(world_rank{0}, space).ok());
        EXPECT_TRUE(all.locks[0]->try_acquire(world_rank{0}, space).value());
        ASSERT_TRUE(all.locks[0]->release(world_rank{0}, space).ok());
    }
    EXPECT_FALSE(all.ranks.engine(world_rank{0}).poll());
}

TEST(lock_queue, once_somebody_waits_nobody_overtakes) {
    world all(3);
    ASSERT_TRUE(all.locks[0]->acquire(world_rank{0}, space).ok());
    std::atomic<bool> enough{false};
    std::thread waiting([&] {
        EXPECT_TRUE(all.locks[1]->acquire(world_rank{0}, space).ok());
        while (!enough) {
        }
        EXPECT_TRUE(all.locks[1]->release(world_rank{0}, space).ok());
    });
    all.serve_target();
    ASSERT_TRUE(all.locks[0]->release(world_rank{0}, space).ok());
    EXPECT_FALSE(all.locks[2]->try_acquire(world_rank{0}, space).value());
    enough = true;
    waiting.join();
    EXPECT_TRUE(all.locks[2]->try_acquire(world_rank{0}, space).value());
}

/// Ranks 1 and 2 on nodes of their own: they take the lock by messages, ranks of the target's node
/// by its word.
struct spread_world : world {
    spread_world() : world(4, 60, {0, 1, 2, 0}) {}
    /// Serves rank 0 while the thread runs.
    template <typename Body>
    void with_target_served(Body &&body) {
        std::atomic<bool> over{false};
        std::thread other([&] {
            body();
            over = true;
        });
        while (!over) {
            ranks.engine(world_rank{0}).poll();
        }
        other.join();
    }
};

TEST(lock_queue, ranks_of_other_nodes_and_of_the_own_share_it) {
    spread_world all;
    auto const try_of = [&](int rank) {
        bool taken = false;
        all.with_target_served([&] {
            taken = all.locks[static_cast<std::size_t>(rank)]
                        ->try_acquire(world_rank{0}, space)
                        .value();
        });
        return taken;
    };
    auto const release_of = [&](int rank) {
        all.with_target_served([&] {
            EXPECT_TRUE(
                all.locks[static_cast<std::size_t>(rank)]->release(world_rank{0}, space).ok());
        });
    };
    for (int const holder : {1, 3, 2, 0}) {
        EXPECT_TRUE(try_of(holder)) << holder;
        for (int const other : {0, 1, 2, 3}) {
            if (other != holder) {
                EXPECT_FALSE(try_of(other)) << other << " while " << holder << " holds it";
            }
        }
        release_of(holder);
    }
}

TEST(lock_queue, excludes_under_contention_of_both_kinds) {
    spread_world all;
    constexpr int rounds = 500;
    int counter = 0; // under the lock only
    all.with_target_served([&] {
        std::vector<std::thread> team;
        for (int rank = 0; rank < 4; ++rank) {
            team.emplace_back([&, rank] {
                auto &own = *all.locks[static_cast<std::size_t>(rank)];
                for (int i = 0; i < rounds; ++i) {
                    ASSERT_TRUE(own.acquire(world_rank{0}, space).ok());
                    ++counter;
                    ASSERT_TRUE(own.release(world_rank{0}, space).ok());
                }
            });
        }
        for (auto &thread : team) {
            thread.join();
        }
    });
    EXPECT_EQ(counter, 4 * rounds);
}

TEST(lock_queue, whoever_gives_up_is_not_granted_the_lock_later) {
    world all(3, 0.05);
    ASSERT_TRUE(all.locks[0]->acquire(world_rank{0}, space).ok());
    // Nobody serves rank 0: the request of rank 1 times out and is cancelled.
    auto const refused = all.locks[1]->acquire(world_rank{0}, space);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.failure().code(), OMPX_ERR_TIMEOUT);
    EXPECT_NE(refused.failure().message().find("lock of rank 0, which rank 0 holds"),
              std::string::npos)
        << refused.failure().message();
    all.serve_target(); // request and cancellation
    ASSERT_TRUE(all.locks[0]->release(world_rank{0}, space).ok());
    EXPECT_TRUE(all.locks[2]->try_acquire(world_rank{0}, space).value());
    EXPECT_EQ(all.locks[1]->num_held(), 0);
    EXPECT_EQ(all.locks[2]->num_held(), 1);
}

TEST(lock_queue, a_grant_that_comes_too_late_goes_to_the_next) {
    world all(3, 0.05);
    ASSERT_TRUE(all.locks[0]->acquire(world_rank{0}, space).ok());
    // Rank 1 gives up, but the lock is released before its request is looked at: the target grants
    // it, and takes it back when it comes to the cancellation.
    ASSERT_FALSE(all.locks[1]->acquire(world_rank{0}, space).ok());
    ASSERT_TRUE(all.locks[0]->release(world_rank{0}, space).ok());
    all.serve_target();
    EXPECT_TRUE(all.locks[2]->try_acquire(world_rank{0}, space).value());
}

} // namespace
