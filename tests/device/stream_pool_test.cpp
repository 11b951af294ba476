// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The stream pool on queues that complete when the test says so.
#include "device/scripted_backend.h"
#include "device/stream_pool.h"

#include <gmock/gmock.h>

#include <cstring>
#include <thread>

namespace diomp::device {
namespace {

using test::script;
using test::scripted_backend;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class pool_test : public ::testing::Test {
protected:
    static constexpr device_id zero = device_id(0);
    static constexpr device_id one = device_id(1);

    ticket start(device_id on = zero) {
        auto started = pool_.copy(on, &target_, &source_, sizeof(source_));
        EXPECT_TRUE(started.ok()) << started.failure().message();
        return started.ok() ? started.take() : ticket();
    }
    bool is_done(const ticket &of) {
        auto answer = pool_.is_done(of);
        EXPECT_TRUE(answer.ok());
        return answer.ok() && answer.value();
    }
    bool nothing_in_flight() {
        auto answer = pool_.poll();
        EXPECT_TRUE(answer.ok());
        return answer.ok() && answer.value();
    }

    script script_;
    scripted_backend backend_{script_, 2};
    stream_pool pool_{backend_, {.max_active = 4}};
    int source_ = 1;
    int target_ = 0;
};

TEST_F(pool_test, queue_is_used_again_once_its_copy_was_seen_complete) {
    ticket const first = start();
    EXPECT_FALSE(is_done(first));
    script_.complete(0);
    EXPECT_TRUE(is_done(first));
    ticket const second = start();
    EXPECT_FALSE(is_done(second));
    EXPECT_TRUE(is_done(first)) << "the queue is busy again, but not with the first copy";
    EXPECT_EQ(pool_.counted().created, 1U);
    EXPECT_EQ(pool_.counted().reused, 1U);
}

TEST_F(pool_test, queue_is_used_again_although_nobody_asked_for_its_copy) {
    start();
    script_.complete(0);
    start();
    EXPECT_EQ(pool_.counted().created, 1U);
    EXPECT_EQ(script_.copies(0), 2);
}

TEST_F(pool_test, copies_under_way_have_a_queue_each) {
    start();
    start();
    start();
    EXPECT_EQ(pool_.counted().created, 3U);
    EXPECT_EQ(pool_.counted().reused, 0U);
}

TEST_F(pool_test, copies_complete_in_any_order) {
    std::vector<ticket> tickets{start(), start(), start()};
    script_.complete(2);
    EXPECT_FALSE(is_done(tickets[0]));
    EXPECT_FALSE(is_done(tickets[1]));
    EXPECT_TRUE(is_done(tickets[2]));
    script_.complete(0);
    EXPECT_TRUE(is_done(tickets[0]));
    EXPECT_FALSE(is_done(tickets[1]));
    EXPECT_FALSE(nothing_in_flight());
    script_.complete(1);
    EXPECT_TRUE(nothing_in_flight());
    EXPECT_TRUE(is_done(tickets[1]));
}

TEST_F(pool_test, question_about_one_copy_asks_no_other_queue) {
    start();
    ticket const second = start();
    int const before = script_.questions(0);
    EXPECT_FALSE(is_done(second));
    EXPECT_EQ(script_.questions(0), before);
    EXPECT_GT(script_.questions(1), 0);
}

TEST_F(pool_test, half_of_the_queues_are_waited_for_at_the_limit) {
    std::vector<ticket> const tickets{start(), start(), start(), start()};
    EXPECT_EQ(pool_.counted().half_synchronisations, 0U);
    start();
    EXPECT_THAT(script_.waited(), ElementsAre(0, 1));
    EXPECT_EQ(pool_.counted().created, 4U);
    EXPECT_EQ(pool_.counted().half_synchronisations, 1U);
    EXPECT_TRUE(is_done(tickets[0]));
    EXPECT_TRUE(is_done(tickets[1]));
    EXPECT_FALSE(is_done(tickets[2]));
    EXPECT_FALSE(is_done(tickets[3]));
    start(); // the other queue of that half
    EXPECT_EQ(pool_.counted().half_synchronisations, 1U);
    start();
    EXPECT_THAT(script_.waited(), ElementsAre(0, 1, 2, 3));
}

TEST_F(pool_test, oldest_copies_are_waited_for_not_oldest_queues) {
    ticket const first = start();
    start();
    start();
    start();
    script_.complete(0);
    EXPECT_TRUE(is_done(first));
    start(); // on queue 0, which now has the youngest copy
    start();
    EXPECT_THAT(script_.waited(), ElementsAre(1, 2));
}

TEST_F(pool_test, finished_queue_is_taken_at_the_limit_and_nobody_waits) {
    start();
    start();
    start();
    start();
    script_.complete(3);
    start();
    EXPECT_TRUE(script_.waited().empty());
    EXPECT_EQ(script_.copies(3), 2);
}

TEST_F(pool_test, each_device_has_its_own_queues) {
    start(zero);
    start(zero);
    start(zero);
    start(zero);
    ticket const other = start(one);
    EXPECT_TRUE(script_.waited().empty());
    EXPECT_EQ(script_.device(4), one);
    script_.complete(4);
    EXPECT_TRUE(is_done(other));
}

TEST_F(pool_test, poll_asks_each_queue_once_and_waits_for_none) {
    script_.wait_completes = false; // a wait would hang
    start(zero);
    start(zero);
    start(one);
    std::vector<int> const before{script_.questions(0), script_.questions(1), script_.questions(2)};
    EXPECT_FALSE(nothing_in_flight());
    for (std::size_t i = 0; i < before.size(); ++i) {
        EXPECT_EQ(script_.questions(i), before[i] + 1) << i;
    }
    EXPECT_TRUE(script_.waited().empty());
    script_.complete(0);
    script_.complete(1);
    script_.complete(2);
    EXPECT_TRUE(nothing_in_flight());
    EXPECT_TRUE(nothing_in_flight());
}

TEST_F(pool_test, drain_waits_for_all) {
    ticket const first = start(zero);
    ticket const second = start(one);
    EXPECT_TRUE(pool_.drain().ok());
    EXPECT_THAT(script_.waited(), ElementsAre(0, 1));
    EXPECT_TRUE(is_done(first));
    EXPECT_TRUE(is_done(second));
    EXPECT_TRUE(nothing_in_flight());
}

TEST_F(pool_test, destruction_waits_for_all) {
    script others;
    scripted_backend backend(others, 1);
    {
        stream_pool short_lived(backend, {.max_active = 2});
        ASSERT_TRUE(short_lived.copy(zero, &target_, &source_, sizeof(source_)).ok());
        EXPECT_TRUE(others.waited().empty());
    }
    EXPECT_THAT(others.waited(), ElementsAre(0));
    EXPECT_EQ(others.alive(), 0);
}

TEST_F(pool_test, failure_is_told_to_whom_it_befell_and_its_queue_is_gone) {
    ticket const bad = start();
    ticket const good = start();
    script_.fail(0);
    script_.complete(1);
    for (int i = 0; i < 2; ++i) { // the answer stays
        auto answer = pool_.is_done(bad);
        ASSERT_FALSE(answer.ok());
        EXPECT_EQ(answer.failure().code(), OMPX_ERR_SYSTEM);
        EXPECT_THAT(answer.failure().message(), HasSubstr("queue 0 broke"));
    }
    EXPECT_TRUE(is_done(good));
    EXPECT_TRUE(nothing_in_flight()) << "who asked has been told";
    EXPECT_FALSE(script_.exists(0));
    start();
    start();
    EXPECT_EQ(script_.copies(1), 2);
    EXPECT_EQ(pool_.counted().created, 3U);
    EXPECT_EQ(pool_.counted().failed, 1U);
}

TEST_F(pool_test, failures_that_nobody_asked_for_are_told_by_poll_each_once) {
    start();
    start();
    ticket const last = start();
    script_.fail(0);
    script_.fail(1);
    script_.complete(2);
    for (const char *text : {"queue 0 broke", "queue 1 broke"}) {
        auto answer = pool_.poll();
        ASSERT_FALSE(answer.ok());
        EXPECT_THAT(answer.failure().message(), HasSubstr(text));
    }
    EXPECT_TRUE(nothing_in_flight());
    EXPECT_TRUE(is_done(last));
}

TEST_F(pool_test, drain_tells_failures_and_completes_the_others) {
    start();
    ticket const good = start();
    script_.fail(0);
    status const outcome = pool_.drain();
    ASSERT_FALSE(outcome.ok());
    EXPECT_THAT(outcome.failure().message(), HasSubstr("queue 0 broke"));
    EXPECT_TRUE(is_done(good));
    EXPECT_TRUE(pool_.drain().ok());
}

TEST_F(pool_test, failure_found_by_waiting_is_not_the_new_copys) {
    std::vector<ticket> const tickets{start(), start(), start(), start()};
    script_.fail_when_waited(1);
    ticket const fresh = start();
    EXPECT_FALSE(is_done(fresh));
    EXPECT_TRUE(is_done(tickets[0]));
    EXPECT_FALSE(pool_.is_done(tickets[1]).ok());
    EXPECT_FALSE(script_.exists(1));
    start();
    EXPECT_EQ(pool_.counted().created, 5U) << "in the place of the queue that failed";
}

TEST_F(pool_test, copy_that_cannot_start_is_an_error_and_its_queue_is_gone) {
    script_.refuse_copies = 1;
    auto const started = pool_.copy(zero, &target_, &source_, sizeof(source_));
    ASSERT_FALSE(started.ok());
    EXPECT_THAT(started.failure().message(), HasSubstr("refused"));
    EXPECT_FALSE(script_.exists(0));
    EXPECT_TRUE(nothing_in_flight());
    start();
    EXPECT_EQ(pool_.counted().created, 2U);
}

TEST_F(pool_test, queue_that_cannot_be_made_does_not_count) {
    stream_pool narrow(backend_, {.max_active = 1});
    script_.refuse_queues = 1;
    ASSERT_FALSE(narrow.copy(zero, &target_, &source_, sizeof(source_)).ok());
    // Were it counted, this would wait for ever.
    ASSERT_TRUE(narrow.copy(zero, &target_, &source_, sizeof(source_)).ok());
    EXPECT_EQ(narrow.counted().created, 1U);
}

TEST_F(pool_test, limit_below_one_is_one) {
    stream_pool narrow(backend_, {.max_active = 0});
    ASSERT_TRUE(narrow.copy(zero, &target_, &source_, sizeof(source_)).ok());
    ASSERT_TRUE(narrow.copy(zero, &target_, &source_, sizeof(source_)).ok());
    EXPECT_THAT(script_.waited(), ElementsAre(0));
    EXPECT_EQ(narrow.counted().created, 1U);
}

TEST_F(pool_test, unknown_device_is_an_error) {
    auto const started = pool_.copy(device_id(2), &target_, &source_, sizeof(source_));
    ASSERT_FALSE(started.ok());
    EXPECT_EQ(started.failure().code(), OMPX_ERR_ARG);
    EXPECT_FALSE(pool_.copy(device_id(), &target_, &source_, sizeof(source_)).ok());
}

TEST_F(pool_test, default_ticket_is_done) { EXPECT_TRUE(is_done(ticket())); }

TEST_F(pool_test, nobody_else_blocks_while_a_thread_waits_for_half) {
    std::vector<ticket> const tickets{start(), start(), start(), start()};
    script_.wait_completes = false;
    std::thread waiter([&] { start(); });
    script_.until_waiting_for(0);
    EXPECT_FALSE(is_done(tickets[0]));
    EXPECT_FALSE(nothing_in_flight());
    script_.complete(3);
    EXPECT_TRUE(is_done(tickets[3]));
    start(); // finds queue 3, not the thread that waits
    EXPECT_EQ(script_.copies(3), 2);
    EXPECT_FALSE(is_done(start(one)));
    script_.complete(0);
    script_.complete(1);
    waiter.join();
    EXPECT_TRUE(is_done(tickets[0]));
    EXPECT_TRUE(is_done(tickets[1]));
    EXPECT_FALSE(is_done(tickets[2]));
    EXPECT_EQ(pool_.counted().half_synchronisations, 1U);
    script_.complete_all();
}

TEST_F(pool_test, flight_of_one_thread_alone_is_not_nothing) {
    // The only copy is in the hands of a thread that drains: poll must not call that nothing.
    start();
    script_.wait_completes = false;
    std::thread drainer([&] { EXPECT_TRUE(pool_.drain().ok()); });
    script_.until_waiting_for(0);
    EXPECT_FALSE(nothing_in_flight());
    script_.complete(0);
    drainer.join();
    EXPECT_TRUE(nothing_in_flight());
}

// Queues check by themselves that they get one copy at a time, and that there are at most four.
TEST_F(pool_test, many_threads_share_few_queues) {
    constexpr int num_threads = 8;
    constexpr int copies_each = 400;
    script_.completes_after = 3; // questions
    script_.most_per_device = 4;
    std::vector<std::thread> threads;
    for (int t = 0; t < num_threads; ++t) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < copies_each; ++i) {
                int from = t * copies_each + i;
                int into = -1;
                auto started = pool_.copy(device_id(i % 2), &into, &from, sizeof(from));
                ASSERT_TRUE(started.ok());
                while (!is_done(started.value())) {
                    if (i % 7 == 0) {
                        ASSERT_TRUE(pool_.poll().ok());
                    }
                    std::this_thread::yield();
                }
                ASSERT_EQ(into, from);
            }
        });
    }
    for (std::thread &each : threads) {
        each.join();
    }
    EXPECT_TRUE(nothing_in_flight());
    EXPECT_EQ(script_.misuses(), 0);
    auto const counted = pool_.counted();
    EXPECT_LE(counted.created, 8U);
    EXPECT_EQ(counted.created + counted.reused, std::uint64_t{num_threads} * copies_each);
}

} // namespace
} // namespace diomp::device
