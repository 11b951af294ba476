// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sleeping on a network's descriptor. That of UCX stays readable as long as a connection waits for
// its peer, although there is nothing to do.
#include "support/remote_ranks.h"
#include "support/thread_ranks.h"
#include "transport/common/network_base.h"
#include "transport/conduit.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <sys/eventfd.h>
#include <thread>
#include <vector>

namespace {

using namespace diomp;
using steady = std::chrono::steady_clock;
using std::chrono::milliseconds;

std::int64_t ms_since(steady::time_point begin) {
    return std::chrono::duration_cast<milliseconds>(steady::now() - begin).count();
}

/// A peer that never responds.
class silent_peer final : public transport::network_peer {
public:
    silent_peer() : network_peer(world_rank{1}) {}
    bool is_awaited() override { return awaited; }
    std::string describe_outstanding(bool /*is_silent*/) override { return {}; }

    std::atomic<bool> awaited{false};

private:
    std::string count_outstanding() const override { return {}; }
};

/// A network whose descriptor is readable from the start and stays so.
class readable_network final : public transport::network_base {
public:
    explicit readable_network(launch::launcher &launcher, bool is_readable = true,
                              const transport::conduit_options &options = {})
        : network_base(launcher, options, [] {}),
          descriptor_(::eventfd(is_readable ? 1 : 0, EFD_CLOEXEC)) {}
    ~readable_network() override { stop_thread(); }
    readable_network(const readable_network &) = delete;
    readable_network &operator=(const readable_network &) = delete;

    status start() { return start_thread(descriptor_.get()); }
    status put(world_rank, std::uint64_t, const void *, std::size_t,
               transport::completion &) override {
        return {};
    }
    status get(world_rank, std::uint64_t, void *, std::size_t, transport::completion &) override {
        return {};
    }
    status flush(world_rank, transport::completion &) override { return {}; }
    status flush_all(transport::completion &) override { return {}; }
    bool try_send(world_rank, transport::handler_id, std::span<const std::byte>) override {
        return true;
    }
    result<bool> send_long(world_rank, transport::handler_id, std::span<const std::byte>,
                           std::span<const std::byte>, transport::completion &) override {
        return false;
    }
    int poll(transport::message_handler sink) override {
        return dispatch(moves.load(std::memory_order_relaxed), sink);
    }
    std::string describe_path(world_rank) const override { return "readable"; }

    std::atomic<bool> moves{false}; ///< what a look at the network finds
    std::atomic<std::int64_t> num_looks{0};
    silent_peer peer;
    std::atomic<int> num_pings{0};

private:
    bool serve() override {
        num_looks.fetch_add(1, std::memory_order_relaxed);
        return moves.load(std::memory_order_relaxed);
    }
    void ping(transport::network_peer &) override { ++num_pings; }
    std::vector<transport::network_peer *> known_peers() const override {
        return {const_cast<silent_peer *>(&peer)};
    }
    status drain() override { return {}; }

    unique_fd descriptor_;
};

class network_base : public testing::Test {
protected:
    void SetUp() override { ASSERT_TRUE(network.start().ok()); }
    /// As a thread that waits in a call: looks, then naps.
    void look_and_nap(milliseconds limit) {
        network.poll([](const transport::message &) {});
        network.idle_wait(limit, [] { return false; });
    }

    test::lone_launcher launcher{0, 2, "test"};
    readable_network network{launcher};
};

TEST_F(network_base, naps_end_at_once_by_the_descriptor_but_not_one_after_the_other) {
    network.begin_polling();
    constexpr int num_naps = 100;
    auto const begin = steady::now();
    for (int i = 0; i < num_naps; ++i) {
        look_and_nap(milliseconds{1});
    }
    EXPECT_GE(ms_since(begin), num_naps / 2);
    network.end_polling();
}

TEST_F(network_base, a_nap_listens_again_once_something_has_moved) {
    network.begin_polling();
    network.moves = true;
    auto const begin = steady::now();
    for (int i = 0; i < 4; ++i) {
        look_and_nap(milliseconds{60000});
    }
    EXPECT_LT(ms_since(begin), 60000);
    network.end_polling();
}

TEST_F(network_base, the_thread_sleeps_between_looks_that_find_nothing) {
    std::int64_t const before = network.num_looks;
    auto const begin = steady::now();
    std::this_thread::sleep_for(milliseconds{300});
    std::int64_t const looks = network.num_looks - before;
    std::int64_t const elapsed_ms = ms_since(begin);
    // Two for each sleep of a millisecond, and what was under way at both ends.
    EXPECT_LE(looks, 2 * elapsed_ms + 10);
}

// The network's thread sleeps without a limit while no peer is awaited, and nothing but the wait
// itself can end that sleep.
TEST(network_liveness, peers_are_checked_during_a_wait_that_sleeps) {
    test::lone_launcher launcher{0, 2, "test"};
    transport::conduit_options options;
    options.dead_peer_timeout_s = 0.4;
    readable_network network(launcher, false, options);
    ASSERT_TRUE(network.start().ok());
    std::vector<std::unique_ptr<test::rank_queue>> queues;
    queues.push_back(std::make_unique<test::rank_queue>());
    test::thread_node node(queues, world_rank{0});
    std::atomic<std::uint32_t> store_sleepers{0};
    transport::conduit_waits waits(node, &network, &store_sleepers);
    std::this_thread::sleep_for(milliseconds{1000}); // longer than the check's interval
    network.peer.awaited = true;
    constexpr auto what = transport::wait_kind::handler;
    waits.begin_polling();
    auto const begin = steady::now();
    for (bool is_first = true; !network.peer.is_failed() && ms_since(begin) < 20000;
         is_first = false) {
        EXPECT_FALSE(waits.pause_polling(what, is_first));
        EXPECT_FALSE(
            waits.idle_wait(what, waits.activity(), milliseconds{100}, [] { return false; }));
        waits.resume_polling(what);
    }
    EXPECT_TRUE(network.peer.is_failed());
    EXPECT_GT(network.num_pings, 0);
    static_cast<void>(waits.end_polling());
}

/// A network without work and without peers.
class idle_driver final : public transport::network_driver {
public:
    bool serve() override { return false; }
    void ping(transport::network_peer &) override {}
    std::vector<transport::network_peer *> known_peers() const override { return {}; }
    status drain() override { return {}; }
};

TEST(idle_waiters, do_not_sleep_without_a_descriptor) {
    idle_driver driver;
    transport::poller_count pollers;
    transport::idle_waiters waiters(driver, pollers);
    waiters.start(-1);
    EXPECT_FALSE(waiters.wait(milliseconds{60000}, [] { return false; }));
}

TEST(idle_waiters, are_woken_by_another_thread) {
    idle_driver driver;
    transport::poller_count pollers;
    unique_fd const descriptor(::eventfd(0, EFD_CLOEXEC));
    transport::idle_waiters waiters(driver, pollers);
    waiters.start(descriptor.get());
    std::atomic<bool> is_over{false};
    auto const begin = steady::now();
    std::thread waker([&] {
        is_over = true;
        waiters.wake();
    });
    EXPECT_TRUE(waiters.wait(milliseconds{60000}, [&] { return is_over.load(); }));
    waker.join();
    EXPECT_LT(ms_since(begin), 60000);
}

// Each waits for its own condition; all are woken for each, and none takes the wake of another one.
TEST(idle_waiters, wake_all_and_lose_no_wake) {
    constexpr int num_threads = 4;
    constexpr int num_rounds = 500;
    idle_driver driver;
    transport::poller_count pollers;
    unique_fd const descriptor(::eventfd(0, EFD_CLOEXEC));
    transport::idle_waiters waiters(driver, pollers);
    waiters.start(descriptor.get());
    std::array<std::atomic<int>, num_threads> released{};
    std::array<std::atomic<int>, num_threads> passed{};
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < num_threads; ++i) {
        threads.emplace_back([&, i] {
            for (int round = 1; round <= num_rounds; ++round) {
                auto const is_over = [&] { return released[i] >= round; };
                while (!is_over()) {
                    waiters.wait(milliseconds{60000}, is_over);
                }
                passed[i] = round;
            }
        });
    }
    auto const begin = steady::now();
    for (int round = 1; round <= num_rounds; ++round) {
        for (std::size_t i = 0; i < num_threads; ++i) {
            released[i] = round;
            waiters.wake();
        }
        for (auto &each : passed) {
            while (each < round && ms_since(begin) < 60000) {
                std::this_thread::yield();
            }
        }
    }
    EXPECT_LT(ms_since(begin), 60000) << "a thread slept to its limit";
    for (auto &each : threads) {
        each.join();
    }
}

TEST(poller_count, tells_polling_from_sleeping) {
    using transport::polling;
    transport::poller_count count;
    EXPECT_EQ(count.state(), polling::none);
    count.note_poll();
    EXPECT_EQ(count.state(), polling::recent);
    EXPECT_EQ(count.state(), polling::none);
    count.begin();
    count.begin();
    count.note_poll();
    EXPECT_EQ(count.state(), polling::active);
    count.begin_sleep();
    EXPECT_EQ(count.state(), polling::active) << "the other one polls";
    count.begin_sleep();
    EXPECT_EQ(count.state(), polling::watched);
    count.end_sleep();
    EXPECT_EQ(count.state(), polling::active);
    count.end();
    EXPECT_EQ(count.state(), polling::watched);
    count.end_sleep();
    count.end();
    EXPECT_EQ(count.state(), polling::none);
}

/// What a network thread does while others poll.
class network_thread_beside_pollers : public testing::Test {
protected:
    void SetUp() override {
        transport::network_thread_work work;
        work.state = [this] {
            ++num_rounds;
            return pollers.state();
        };
        work.serve = [this] {
            ++num_served;
            return false;
        };
        work.arm = [] { return true; };
        work.check_peers = [] { return -1; };
        auto started = transport::network_thread::start(descriptor.get(), std::move(work));
        ASSERT_TRUE(started.ok());
        thread = started.take();
    }
    void TearDown() override { thread.reset(); }

    static void wait_until(const std::function<bool()> &is_over) {
        auto const begin = steady::now();
        while (!is_over() && ms_since(begin) < 20000) {
            std::this_thread::sleep_for(milliseconds{1});
        }
        EXPECT_TRUE(is_over());
    }

    transport::poller_count pollers;
    std::atomic<int> num_rounds{0};
    std::atomic<int> num_served{0};
    unique_fd descriptor{::eventfd(0, EFD_CLOEXEC)};
    std::unique_ptr<transport::network_thread> thread;
};

TEST_F(network_thread_beside_pollers, it_sleeps_while_they_sleep_and_serves_when_it_is_woken) {
    pollers.begin();
    pollers.begin_sleep();
    thread->wake();
    std::this_thread::sleep_for(milliseconds{50});
    int const before = num_rounds;
    std::this_thread::sleep_for(milliseconds{300});
    EXPECT_LE(num_rounds - before, 4) << "it woke again and again";
    // Work that the descriptor does not announce.
    int const served = num_served;
    thread->wake();
    wait_until([&] { return num_served > served; });
    // The thread that polls ends its wait: the descriptor is watched again.
    pollers.end_sleep();
    pollers.end();
    thread->wake();
    std::this_thread::sleep_for(milliseconds{20});
    int const watched = num_served;
    std::uint64_t const one = 1;
    ASSERT_EQ(::write(descriptor.get(), &one, sizeof(one)), static_cast<ssize_t>(sizeof(one)));
    wait_until([&] { return num_served > watched; });
}

TEST_F(network_thread_beside_pollers, it_sleeps_beside_one_that_polls_for_long) {
    pollers.begin();
    thread->wake();
    std::this_thread::sleep_for(milliseconds{100});
    int const before = num_rounds;
    std::this_thread::sleep_for(milliseconds{300});
    EXPECT_LE(num_rounds - before, 4) << "it woke again and again";
    int const served = num_served;
    pollers.end();
    thread->wake();
    wait_until([&] { return num_served > served + 1; });
}

TEST(arrivals, dispatch_each_message_once_and_in_order) {
    transport::arrivals arrived;
    for (std::uint16_t handler = 1; handler <= 3; ++handler) {
        std::byte const payload{static_cast<unsigned char>(handler)};
        arrived.add_message(world_rank{1}, handler, &payload, 1);
    }
    std::vector<int> seen;
    auto const note = [&](const transport::message &each) {
        EXPECT_EQ(std::to_integer<int>(each.payload[0]), each.handler);
        EXPECT_EQ(arrived.dispatch([](const transport::message &) {}), 0); // being dispatched
        seen.push_back(each.handler);
    };
    EXPECT_EQ(arrived.dispatch(note), 3);
    EXPECT_EQ(seen, (std::vector{1, 2, 3}));
    EXPECT_FALSE(arrived.has_messages());
}

} // namespace
