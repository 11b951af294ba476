// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The queue at a lock's target, driven message by message.
#include "support/thread_ranks.h"
#include "sync/lock.h"

#include <gtest/gtest.h>

#include <atomic>

namespace {

using namespace diomp;

struct world {
    explicit world(int num_ranks, double timeout_s = 60)
        : ranks(num_ranks, std::size_t{1} << 20,
                {.spin_count = 20,
                 .timeout_s = timeout_s,
                 .warn_after_s = 30,
                 .progress_thread = false}) {
        for (int rank = 0; rank < num_ranks; ++rank) {
            calls.push_back(
                std::make_unique<conduit::call_service>(ranks.engine(world_rank{rank})));
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
    std::vector<std::unique_ptr<conduit::call_service>> calls;
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

TEST(lock_queue, whoever_gives_up_is_not_granted_the_lock_later) {
    world all(3, 0.05);
    ASSERT_TRUE(all.locks[0]->acquire(world_rank{0}, space).ok());
    // Nobody serves rank 0: the request of rank 1 times out and is cancelled.
    auto const refused = all.locks[1]->acquire(world_rank{0}, space);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.failure().code(), OMPX_ERR_TIMEOUT);
    EXPECT_NE(refused.failure().message().find("lock of rank 0"), std::string::npos);
    all.serve_target(); // request and cancellation
    ASSERT_TRUE(all.locks[0]->release(world_rank{0}, space).ok());
    all.serve_target();
    // The lock is free for rank 2.
    std::thread other(
        [&] { EXPECT_TRUE(all.locks[2]->try_acquire(world_rank{0}, space).value()); });
    all.serve_target();
    other.join();
    EXPECT_EQ(all.locks[1]->num_held(), 0);
    EXPECT_EQ(all.locks[2]->num_held(), 1);
}

} // namespace
