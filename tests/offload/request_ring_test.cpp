// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Requests of a GPU: the ring under many producers, full, and given up.
#include "offload/ring_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

namespace {

using testing::HasSubstr;
using request_ring = ring_tests::ring_fixture;

diomp_request numbered(std::uint64_t number, int producer, bool with_reply) {
    diomp_request made{};
    for (std::uint64_t i = 0; i < 6; ++i) {
        made.field[i] = (number + i) * 0x9e3779b97f4a7c15U; // uses all bits
    }
    made.rank = producer;
    made.operation = DIOMP_REQUEST_PUT_INLINE | (with_reply ? DIOMP_REQUEST_REPLY : 0U);
    made.call = static_cast<std::uint32_t>(number) & 0xff;
    made.detail = static_cast<std::uint32_t>(number) & 0xffff;
    return made;
}

bool are_equal(const diomp_request &a, const diomp_request &b) {
    return std::memcmp(&a, &b, sizeof(a)) == 0;
}

TEST(request_words, keep_every_bit) {
    std::mt19937_64 random(7); // NOLINT(bugprone-random-generator-seed): the same every time
    for (int i = 0; i < 1000; ++i) {
        diomp_request before{};
        for (std::uint64_t &each : before.field) {
            each = random();
        }
        before.rank = static_cast<std::int32_t>(random());
        before.operation = static_cast<std::uint32_t>(random() & 0xff);
        before.call = static_cast<std::uint32_t>(random() & 0xff);
        before.detail = static_cast<std::uint32_t>(random() & 0xffff);
        std::uint64_t const lap = random() & 0xff;
        std::array<std::uint64_t, 8> words{};
        diomp_request_pack(&before, lap, words.data());
        diomp_request after{};
        diomp_request_unpack(words.data(), &after);
        ASSERT_TRUE(are_equal(before, after));
        for (std::uint64_t const word : words) {
            ASSERT_EQ(word & 0xff, lap);
        }
    }
}

/// Six producers, of which each third request has a reply, in a ring of 8 slots, over more laps
/// than the words can count.
TEST_F(request_ring, many_producers_lose_and_mix_nothing) {
    constexpr int num_producers = 6;
    constexpr std::uint64_t num_each = 1000;
    std::array<std::uint64_t, num_producers> expected{};
    int wrong = 0;
    own_.timeout_ns = 20'000'000'000; // what is lost ends the test
    {
        ring_tests::proxy_thread const proxy([&] {
            diomp_request found{};
            if (!ring_.take(found)) {
                return false;
            }
            auto const producer = static_cast<std::size_t>(found.rank);
            bool const is_known = producer < num_producers;
            std::uint64_t const number = is_known ? expected[producer]++ : 0;
            wrong +=
                is_known && are_equal(found, numbered(number, found.rank, number % 3 == 0)) ? 0 : 1;
            std::array<std::uint64_t, 2> const reply{found.field[0] + 1, number};
            ring_.complete(found, static_cast<int>(number % 7), reply);
            return true;
        });
        ring_tests::run_threads(num_producers, [&](int producer) {
            for (std::uint64_t number = 0; number < num_each; ++number) {
                diomp_request const request = numbered(number, producer, number % 3 == 0);
                std::uint64_t index = 0;
                ASSERT_EQ(diomp_ring_store(&own_, &on_device_, &request, &index), DIOMP_DEVICE_OK);
                if (number % 3 == 0) {
                    int status = -1;
                    std::array<std::uint64_t, 2> values{};
                    ASSERT_EQ(
                        diomp_ring_finish(&own_, &on_device_, index, &status, values.data(), 2),
                        DIOMP_DEVICE_OK);
                    ASSERT_EQ(status, static_cast<int>(number % 7));
                    ASSERT_EQ(values[0], request.field[0] + 1);
                    ASSERT_EQ(values[1], number);
                }
            }
        });
        auto const deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (ring_.done() < num_producers * num_each &&
               std::chrono::steady_clock::now() < deadline) {
            std::this_thread::yield();
        }
    }
    EXPECT_EQ(wrong, 0);
    EXPECT_THAT(expected, testing::Each(num_each));
    EXPECT_EQ(ring_.done(), num_producers * num_each);
    EXPECT_EQ(ring_.stored_end(true), num_producers * num_each);
    EXPECT_THAT(busy_, testing::Each(0U));
}

TEST_F(request_ring, a_request_is_taken_when_all_its_words_are_stored) {
    std::array<std::uint64_t, 8> words{};
    diomp_request const request = numbered(11, 1, false);
    diomp_request found{};
    for (std::uint64_t index = 0; index < 600; ++index) { // laps beyond 64
        diomp_request_pack(&request, diomp_lap_of(index, slot_bits), words.data());
        for (std::size_t i = 0; i < words.size(); ++i) {
            ASSERT_FALSE(ring_.take(found)) << index << " " << i;
            on_device_.slots[index % num_slots][(i + index) % 8] = words[(i + index) % 8];
        }
        ASSERT_TRUE(ring_.take(found));
        ASSERT_TRUE(are_equal(request, found));
        ring_.complete(found, 0, {});
    }
}

TEST_F(request_ring, a_full_ring_is_not_overwritten_and_ends_by_the_timeout) {
    own_.timeout_ns = 20'000'000;
    diomp_call const call{DIOMP_CALL_PUT, 1, {}};
    for (std::uint64_t number = 0; number < num_slots; ++number) {
        diomp_request const request = numbered(number, 1, false);
        ASSERT_EQ(diomp_ring_post(&own_, &call, &request, nullptr), 0);
    }
    diomp_request late = numbered(99, 1, false);
    EXPECT_EQ(diomp_ring_post(&own_, &call, &late, nullptr), OMPX_ERR_TIMEOUT);
    EXPECT_THAT(message(), HasSubstr("timed out: the proxy thread"));
    EXPECT_TRUE(ring_.is_broken());
    EXPECT_EQ(diomp_ring_post(&own_, &call, &late, nullptr), OMPX_ERR_TIMEOUT);
    EXPECT_THAT(message(), HasSubstr("an earlier request of this region"));
    EXPECT_EQ(on_device_.reserved, num_slots + 1); // what comes later reserves nothing
    diomp_request found{};
    for (std::uint64_t number = 0; number < num_slots; ++number) {
        ASSERT_TRUE(ring_.take(found));
        EXPECT_TRUE(are_equal(found, numbered(number, 1, false)));
        ring_.complete(found, 0, {});
    }
    EXPECT_FALSE(ring_.take(found));

    ring_.reset();
    on_device_ = ring_.describe(busy_.data());
    EXPECT_EQ(diomp_ring_post(&own_, &call, &late, nullptr), 0);
    ASSERT_TRUE(ring_.take(found));
    EXPECT_TRUE(are_equal(found, late));
}

TEST_F(request_ring, a_reply_waits_until_it_is_read) {
    diomp_request const first = numbered(0, 1, true);
    std::uint64_t index = 0;
    ASSERT_EQ(diomp_ring_store(&own_, &on_device_, &first, &index), DIOMP_DEVICE_OK);
    diomp_request found{};
    std::array<std::uint64_t, 1> reply{41};
    ASSERT_TRUE(ring_.take(found));
    ring_.complete(found, 0, reply);
    std::uint64_t other = 0;
    for (std::uint64_t number = 1; number < num_slots; ++number) {
        diomp_request const between = numbered(number, 1, false);
        ASSERT_EQ(diomp_ring_store(&own_, &on_device_, &between, &other), DIOMP_DEVICE_OK);
        ASSERT_TRUE(ring_.take(found));
        ring_.complete(found, 0, {});
    }
    std::thread lap_later([&] {
        std::uint64_t later = 0;
        EXPECT_EQ(diomp_ring_store(&own_, &on_device_, &first, &later), DIOMP_DEVICE_OK);
        EXPECT_EQ(later, num_slots);
    });
    while (diomp_relaxed_64(&on_device_.reserved) != num_slots + 1) {
        std::this_thread::yield();
    }
    for (int i = 0; i < 1000; ++i) {
        ASSERT_FALSE(ring_.take(found)); // the cell is busy
        std::this_thread::yield();
    }
    int status = -1;
    std::array<std::uint64_t, 1> values{};
    EXPECT_EQ(diomp_ring_finish(&own_, &on_device_, index, &status, values.data(), 1),
              DIOMP_DEVICE_OK);
    EXPECT_EQ(values[0], 41U);
    lap_later.join();
    EXPECT_TRUE(ring_.take(found));
}

TEST_F(request_ring, waits_for_replies_end_when_the_job_is_broken) {
    diomp_call const call{DIOMP_CALL_FENCE, -1, {}};
    diomp_request request = numbered(1, 1, true);
    std::thread runtime([&] { __atomic_store_n(&broken_, OMPX_ERR_PEER, __ATOMIC_RELEASE); });
    EXPECT_EQ(diomp_ring_call(&own_, &call, &request, nullptr, 0), OMPX_ERR_PEER);
    runtime.join();
    EXPECT_THAT(message(), HasSubstr("ompx_fence(): in a target region on device 4: the job is"));
    diomp_request const later = numbered(2, 1, false); // the ring takes no more
    EXPECT_EQ(diomp_ring_post(&own_, &call, &later, nullptr), OMPX_ERR_PEER);
    EXPECT_EQ(on_device_.reserved, 1U);
}

TEST_F(request_ring, what_is_stored_behind_a_gap_is_found) {
    diomp_request const request = numbered(1, 1, false);
    std::uint64_t index = 0;
    ASSERT_EQ(diomp_ring_store(&own_, &on_device_, &request, &index), DIOMP_DEVICE_OK);
    EXPECT_EQ(ring_.stored_end(false), 1U);
    diomp_reserve_64(&on_device_.reserved, 1); // a thread that has stored nothing yet
    ASSERT_EQ(diomp_ring_store(&own_, &on_device_, &request, &index), DIOMP_DEVICE_OK);
    EXPECT_EQ(ring_.stored_end(false), 1U);
    EXPECT_EQ(ring_.stored_end(true), 3U);
}

TEST_F(request_ring, no_ring_is_an_error_and_writes_nothing) {
    own_.num_rings = 0;
    diomp_call const call{DIOMP_CALL_PUT, 1, {}};
    diomp_request request = numbered(1, 1, false);
    EXPECT_EQ(diomp_ring_post(&own_, &call, &request, nullptr), OMPX_ERR_UNSUPPORTED);
    EXPECT_THAT(message(), HasSubstr("can neither load nor store"));
    EXPECT_EQ(diomp_ring_call(&own_, &call, &request, nullptr, 0), OMPX_ERR_UNSUPPORTED);
    EXPECT_EQ(diomp_ring_fence(&own_, &call), 0);
    EXPECT_EQ(on_device_.reserved, 0U);
}

} // namespace
