// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How the engine waits, over a conduit that decides when what is waited for comes.
#include "support/thread_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <pthread.h>
#include <sched.h>
#include <string>
#include <thread>
#include <utility>

namespace {

using namespace diomp;

/// One rank. What it waits for comes at the worst moment: when a waiting thread has just stopped
/// polling in order to sleep.
class late_node final : public test::thread_node {
public:
    using thread_node::thread_node;
    void begin_polling() override { ++num_begun; }
    bool end_polling() override {
        ++num_ended;
        has_come = true;
        return false;
    }
    void sleep(std::uint32_t seen, std::chrono::microseconds limit) override {
        ++num_sleeps;
        thread_node::sleep(seen, limit);
    }

    bool has_come = false;
    int num_begun = 0;
    int num_ended = 0;
    int num_sleeps = 0;
};

struct lonely_rank {
    test::thread_arena arena{1, 4096};
    std::vector<std::unique_ptr<test::rank_queue>> queues = [] {
        std::vector<std::unique_ptr<test::rank_queue>> made;
        made.push_back(std::make_unique<test::rank_queue>());
        return made;
    }();
    std::shared_ptr<late_node> node = std::make_shared<late_node>(queues, world_rank{0});
    late_node &transport = *node;
    diomp::transport::conduit conduit{world_rank{0}, node, nullptr, [this] {
                                          lazy_array<std::byte *> bases(1);
                                          bases[0] = arena.slot(world_rank{0});
                                          return bases;
                                      }()};
    messaging::engine engine{
        conduit, {.spin_count = 20, .timeout_s = 20, .warn_after_s = 0, .progress_thread = false}};
};

auto const describe = [] { return std::string("waiting for what comes late"); };

// Conditions may take what they find (a note that a peer is ready) or send a message: their answer
// cannot be had twice.
TEST(engine, a_wait_ends_with_the_first_true_answer_also_just_before_a_nap) {
    lonely_rank rank;
    auto const take = [&] { return std::exchange(rank.transport.has_come, false); };
    EXPECT_TRUE(rank.engine.wait(take, describe).ok());
    EXPECT_TRUE(rank.engine.wait_for_message(take, describe).ok());
    EXPECT_TRUE(rank.engine.wait_for_network(take, describe).ok());
    EXPECT_EQ(rank.transport.num_sleeps, 0);
    EXPECT_EQ(rank.transport.num_ended, 3);
    EXPECT_EQ(rank.transport.num_begun, rank.transport.num_ended);
}

TEST(engine, a_wait_that_naps_keeps_its_promises_to_poll) {
    lonely_rank rank;
    auto const has_napped = [&] { return rank.transport.num_sleeps == 3; };
    EXPECT_TRUE(rank.engine.wait(has_napped, describe).ok());
    EXPECT_GT(rank.transport.num_begun, 3);
    EXPECT_EQ(rank.transport.num_begun, rank.transport.num_ended);
}

/// Counts the sleeps of waiting threads.
class counting_node final : public test::thread_node {
public:
    using thread_node::thread_node;
    bool idle_wait(diomp::transport::wait_kind what, std::uint32_t seen,
                   std::chrono::microseconds limit, function_ref<bool()> ready) override {
        ++num_sleeps;
        return thread_node::idle_wait(what, seen, limit, ready);
    }
    std::atomic<int> num_sleeps{0};
};

// A rank that waits for seconds, as all do while thousands of them start, wakes a few times only;
// and it wakes at once when the progress thread has run the handler.
TEST(engine, a_wait_for_a_handler_sleeps_until_it_has_run) {
    test::thread_arena arena{1, 4096};
    std::vector<std::unique_ptr<test::rank_queue>> queues;
    queues.push_back(std::make_unique<test::rank_queue>());
    auto const node = std::make_shared<counting_node>(queues, world_rank{0});
    lazy_array<std::byte *> bases(1);
    bases[0] = arena.slot(world_rank{0});
    diomp::transport::conduit conduit{world_rank{0}, node, nullptr, std::move(bases)};
    messaging::engine engine{conduit, {.spin_count = 20, .timeout_s = 60, .warn_after_s = 0}};
    std::atomic<int> num_handled{0};
    auto const handler =
        engine.add_handler([&](const diomp::transport::message &) { ++num_handled; });
    engine.start();
    constexpr int num_rounds = 20;
    std::thread waiter([&] {
        for (int round = 1; round <= num_rounds; ++round) {
            EXPECT_TRUE(
                engine.wait_for_handler([&] { return num_handled >= round; }, describe).ok());
        }
    });
    auto const begin = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(std::chrono::milliseconds{400});
    auto const waited = std::chrono::steady_clock::now() - begin;
    // 1, 4, 16, 64 and 250 ms, then 250 each.
    EXPECT_LE(node->num_sleeps, 6 + waited / std::chrono::milliseconds{250});
    for (int round = 0; round < num_rounds; ++round) {
        engine.send(world_rank{0}, handler, 0);
        std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
    waiter.join();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds{20});
    engine.stop();
}

/// A thread that never sleeps, and the calling one, on one core.
class busy_neighbour {
public:
    /// It yields after so long; by default never.
    explicit busy_neighbour(std::chrono::microseconds burst = std::chrono::hours(1))
        : burst_(burst), thread_([this] { compute(); }) {
        ::sched_getaffinity(0, sizeof(before_), &before_);
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(::sched_getcpu(), &one);
        is_here_ = ::pthread_setaffinity_np(thread_.native_handle(), sizeof(one), &one) == 0 &&
                   ::sched_setaffinity(0, sizeof(one), &one) == 0;
    }
    ~busy_neighbour() {
        is_over_ = true;
        ::sched_setaffinity(0, sizeof(before_), &before_);
        thread_.join();
    }
    busy_neighbour(const busy_neighbour &) = delete;
    busy_neighbour &operator=(const busy_neighbour &) = delete;

    [[nodiscard]] bool is_here() const { return is_here_; }

private:
    void compute() {
        while (!is_over_) {
            auto const begin = std::chrono::steady_clock::now();
            while (!is_over_ && std::chrono::steady_clock::now() - begin < burst_) {
            }
            ::sched_yield();
        }
    }

    std::chrono::microseconds const burst_;
    std::atomic<bool> is_over_{false};
    bool is_here_ = false;
    cpu_set_t before_{};
    std::thread thread_; ///< last: it uses the others
};

// A yield gives the neighbour a time slice, and 64 of them pass before such a wait looks at the
// clock.
TEST(engine, a_wait_beside_a_program_that_never_sleeps_sleeps_instead_of_yielding) {
    constexpr int looks_of_yielding_wait = 64;
    lonely_rank rank;
    busy_neighbour const neighbour;
    if (!neighbour.is_here()) {
        GTEST_SKIP() << "the system does not bind threads to cores";
    }
    int fewest_looks = looks_of_yielding_wait;
    for (int attempt = 0; attempt < 20 && fewest_looks >= looks_of_yielding_wait; ++attempt) {
        int looks = 0;
        int const naps_before = rank.transport.num_sleeps;
        auto const has_napped = [&] {
            ++looks;
            return rank.transport.num_sleeps > naps_before;
        };
        EXPECT_TRUE(rank.engine.wait(has_napped, describe).ok());
        fewest_looks = std::min(fewest_looks, looks);
    }
    EXPECT_LT(fewest_looks, looks_of_yielding_wait);
}

// As ranks do that share a core and a large collective.
TEST(engine, a_wait_beside_a_thread_that_works_half_a_millisecond_at_a_time_yields) {
    busy_neighbour const neighbour(std::chrono::microseconds(500));
    if (!neighbour.is_here()) {
        GTEST_SKIP() << "the system does not bind threads to cores";
    }
    int fewest_naps = 1;
    for (int attempt = 0; attempt < 50 && fewest_naps > 0; ++attempt) { // others want the core too
        lonely_rank rank;
        auto const begin = std::chrono::steady_clock::now();
        auto const is_over = [begin] { // before any wait naps
            return std::chrono::steady_clock::now() - begin > std::chrono::milliseconds(3);
        };
        EXPECT_TRUE(rank.engine.wait(is_over, describe).ok());
        fewest_naps = std::min(fewest_naps, rank.transport.num_sleeps);
    }
    EXPECT_EQ(fewest_naps, 0);
}

} // namespace
