// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Channels in C and in C++: contents, order, credits, several ends and threads, misuse.
#include "diomp.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace {

int const me = ompx_rank_num();
int const ranks = ompx_num_ranks();
int const left = (me + ranks - 1) % ranks;
int const right = (me + 1) % ranks;

/// Differs by sender, message and position.
std::uint8_t pattern(int sender, int message, std::size_t i) {
    return static_cast<std::uint8_t>(static_cast<std::size_t>(sender) * 101 +
                                     static_cast<std::size_t>(message) * 31 + i * 7 + i / 251);
}

void fill(std::uint8_t *block, std::size_t nbytes, int sender, int message) {
    for (std::size_t i = 0; i < nbytes; ++i) {
        block[i] = pattern(sender, message, i);
    }
}

::testing::AssertionResult holds(const void *block, std::size_t nbytes, int sender, int message) {
    auto const *const bytes = static_cast<const std::uint8_t *>(block);
    for (std::size_t i = 0; i < nbytes; ++i) {
        if (bytes[i] != pattern(sender, message, i)) {
            return ::testing::AssertionFailure() << "byte " << i << " of message " << message;
        }
    }
    return ::testing::AssertionSuccess();
}

/// Both ends of a ring: to the right, from the left.
struct ring {
    ompx_channel_t to = OMPX_CHANNEL_NONE;
    ompx_channel_t from = OMPX_CHANNEL_NONE;

    ring(int tag, std::size_t nbytes, int depth) {
        EXPECT_EQ(ompx_channel_create(right, tag, OMPX_CHANNEL_SENDER, nbytes, depth, &to), 0);
        EXPECT_EQ(ompx_channel_create(left, tag, OMPX_CHANNEL_RECEIVER, nbytes, depth, &from), 0);
    }
    ~ring() {
        EXPECT_EQ(ompx_channel_free(&to), 0);
        EXPECT_EQ(ompx_channel_free(&from), 0);
        EXPECT_EQ(to, OMPX_CHANNEL_NONE);
    }
    ring(const ring &) = delete;
    ring &operator=(const ring &) = delete;
};

class sizes_and_depths : public testing::TestWithParam<std::tuple<std::size_t, int>> {};

TEST_P(sizes_and_depths, messages_arrive_complete_and_in_order) {
    auto const [nbytes, depth] = GetParam();
    ring const channels(1, nbytes, depth);
    std::vector<std::uint8_t> block(nbytes);
    int const messages = nbytes > 100000 ? 12 : 60;
    for (int n = 0; n < messages; ++n) {
        fill(block.data(), nbytes, me, n);
        ASSERT_EQ(ompx_channel_send(channels.to, block.data()), 0);
        std::ranges::fill(block, std::uint8_t{0xee}); // the source may be reused at once
        void *const arrived = ompx_channel_receive(channels.from);
        ASSERT_NE(arrived, nullptr);
        ASSERT_EQ(reinterpret_cast<std::uintptr_t>(arrived) % 64, 0U);
        ASSERT_TRUE(holds(arrived, nbytes, left, n));
        std::memset(arrived, 0x55, nbytes); // may be changed until it is released
        ASSERT_EQ(ompx_channel_release(channels.from), 0);
    }
}

INSTANTIATE_TEST_SUITE_P(channel, sizes_and_depths,
                         testing::Combine(testing::Values(0, 1, 8, 56, 57, 64, 4096, 100001,
                                                          3 << 20),
                                          testing::Values(1, 2, 5)));

TEST(channel, sender_runs_ahead_by_its_depth_and_no_further) {
    constexpr int depth = 3;
    ring const channels(2, 8, depth);
    std::int64_t value = me * 1000;
    for (int n = 0; n < depth; ++n, ++value) {
        ASSERT_EQ(ompx_channel_send(channels.to, &value), 0);
    }
    EXPECT_EQ(ompx_channel_try_send(channels.to, &value), OMPX_ERR_BUSY);
    EXPECT_EQ(ompx_channel_test(channels.to), 0);
    void *buffer = nullptr;
    EXPECT_EQ(ompx_channel_try_acquire(channels.to, &buffer), OMPX_ERR_BUSY);
    EXPECT_EQ(buffer, nullptr);
    // All are held at once, then released in order.
    std::array<const std::int64_t *, depth> held{};
    for (int n = 0; n < depth; ++n) {
        held.at(static_cast<std::size_t>(n)) =
            static_cast<const std::int64_t *>(ompx_channel_receive(channels.from));
        ASSERT_NE(held.at(static_cast<std::size_t>(n)), nullptr);
    }
    void *none = nullptr;
    EXPECT_EQ(ompx_channel_try_receive(channels.from, &none), OMPX_ERR_BUSY);
    ompx_barrier(); // until here no rank has released
    EXPECT_EQ(ompx_channel_try_send(channels.to, &value), OMPX_ERR_BUSY);
    ompx_barrier();
    for (int n = 0; n < depth; ++n) {
        EXPECT_EQ(*held.at(static_cast<std::size_t>(n)), left * 1000 + n);
    }
    ASSERT_EQ(ompx_channel_release(channels.from), 0);
    while (ompx_channel_test(channels.to) == 0) {
    }
    EXPECT_EQ(ompx_channel_try_send(channels.to, &value), 0);
    EXPECT_EQ(ompx_channel_try_send(channels.to, &value), OMPX_ERR_BUSY)
        << "one credit, one buffer";
    auto const *const last = static_cast<const std::int64_t *>(ompx_channel_receive(channels.from));
    ASSERT_NE(last, nullptr);
    EXPECT_EQ(*last, left * 1000 + depth);
    EXPECT_EQ(*held[1], left * 1000 + 1) << "messages that are held are not overwritten";
    ompx_barrier(); // until here no rank has freed an end
}

TEST(channel, a_slow_receiver_loses_nothing) {
    ring const channels(3, 1024, 2);
    std::vector<std::uint8_t> block(1024);
    int sent = 0;
    for (int received = 0; received < 300; ++received) {
        for (; sent < 300; ++sent) { // as far ahead as possible
            fill(block.data(), block.size(), me, sent);
            int const status = ompx_channel_try_send(channels.to, block.data());
            if (status == OMPX_ERR_BUSY) {
                break;
            }
            ASSERT_EQ(status, 0);
        }
        void *const arrived = ompx_channel_receive(channels.from);
        ASSERT_NE(arrived, nullptr);
        ASSERT_TRUE(holds(arrived, block.size(), left, received));
        ASSERT_EQ(ompx_channel_release(channels.from), 0);
    }
    for (; sent < 300; ++sent) { // the right neighbour is slower than the left one
        fill(block.data(), block.size(), me, sent);
        ASSERT_EQ(ompx_channel_send(channels.to, block.data()), 0);
    }
}

TEST(channel, buffers_are_written_where_they_are) {
    ring const channels(4, 200, 2);
    for (int n = 0; n < 20; ++n) {
        auto *const buffer = static_cast<std::uint8_t *>(ompx_channel_acquire(channels.to));
        ASSERT_NE(buffer, nullptr);
        ASSERT_EQ(reinterpret_cast<std::uintptr_t>(buffer) % 64, 0U);
        fill(buffer, 200, me, n);
        EXPECT_EQ(ompx_channel_acquire(channels.to), nullptr) << "one buffer at a time";
        EXPECT_EQ(ompx_channel_send(channels.to, buffer), OMPX_ERR_STATE);
        ASSERT_EQ(ompx_channel_commit(channels.to), 0);
        EXPECT_EQ(ompx_channel_commit(channels.to), OMPX_ERR_STATE);
        void *const arrived = ompx_channel_receive(channels.from);
        ASSERT_NE(arrived, nullptr);
        ASSERT_TRUE(holds(arrived, 200, left, n));
        ASSERT_EQ(ompx_channel_release(channels.from), 0);
        EXPECT_EQ(ompx_channel_release(channels.from), OMPX_ERR_STATE);
    }
}

TEST(channel, tags_and_order_of_creation_tell_channels_apart) {
    // Two with one tag, in order; one with another tag, created at different times on both sides.
    std::array<ompx_channel_t, 3> to{};
    std::array<ompx_channel_t, 3> from{};
    std::array<int, 3> const tags{7, 7, -8};
    for (std::size_t i = 0; i < 3; ++i) {
        ASSERT_EQ(ompx_channel_create(right, tags.at(i), OMPX_CHANNEL_SENDER, 8, 2, &to.at(i)), 0);
    }
    for (std::size_t const i : {2U, 0U, 1U}) {
        ASSERT_EQ(ompx_channel_create(left, tags.at(i), OMPX_CHANNEL_RECEIVER, 8, 2, &from.at(i)),
                  0);
    }
    for (std::size_t i = 0; i < 3; ++i) {
        auto const value = static_cast<std::int64_t>(i) + 10 * me;
        ASSERT_EQ(ompx_channel_send(to.at(i), &value), 0);
    }
    for (std::size_t const i : {1U, 2U, 0U}) {
        auto const *const got = static_cast<const std::int64_t *>(ompx_channel_receive(from.at(i)));
        ASSERT_NE(got, nullptr);
        EXPECT_EQ(*got, static_cast<std::int64_t>(i) + 10 * left);
        ASSERT_EQ(ompx_channel_release(from.at(i)), 0);
    }
    for (std::size_t i = 0; i < 3; ++i) {
        ASSERT_EQ(ompx_channel_free(&to.at(i)), 0);
        ASSERT_EQ(ompx_channel_free(&from.at(i)), 0);
    }
}

TEST(channel, wait_any_serves_all_partners) {
    auto const count = static_cast<std::size_t>(ranks);
    std::vector<ompx_channel_t> from(count + 1); // the last one stays empty
    std::vector<ompx_channel_t> to(count);
    for (int r = 0; r < ranks; ++r) {
        auto const i = static_cast<std::size_t>(r);
        ASSERT_EQ(ompx_channel_create(r, 11, OMPX_CHANNEL_RECEIVER, 4, 1, &from[i]), 0);
        ASSERT_EQ(ompx_channel_create(r, 11, OMPX_CHANNEL_SENDER, 4, 1, &to[i]), 0);
    }
    std::vector<int> num_received(count);
    std::vector<int> num_sent(count);
    constexpr int rounds = 40;
    for (int left_over = rounds * ranks; left_over > 0;) {
        for (std::size_t i = 0; i < count; ++i) {
            std::int32_t const value = me * 1000 + num_sent[i];
            num_sent[i] +=
                static_cast<int>(num_sent[i] < rounds && ompx_channel_try_send(to[i], &value) == 0);
        }
        std::size_t index = 0;
        int const found = left_over % 2 == 0
                              ? ompx_channel_test_any(from.data(), from.size(), &index)
                              : ompx_channel_test_any(to.data(), to.size(), &index);
        ASSERT_GE(found, 0);
        bool const all_sent = std::ranges::all_of(num_sent, [](int n) { return n == rounds; });
        if (all_sent) {
            ASSERT_EQ(ompx_channel_wait_any(from.data(), from.size(), &index), 0);
        } else if (ompx_channel_test_any(from.data(), from.size(), &index) != 1) {
            ASSERT_EQ(index, OMPX_NO_INDEX);
            continue;
        }
        ASSERT_LT(index, count);
        void *data = nullptr;
        ASSERT_EQ(ompx_channel_try_receive(from[index], &data), 0);
        EXPECT_EQ(*static_cast<std::int32_t *>(data),
                  static_cast<int>(index) * 1000 + num_received[index]++);
        ASSERT_EQ(ompx_channel_release(from[index]), 0);
        --left_over;
    }
    for (std::size_t i = 0; i < count; ++i) { // others are slower
        for (; num_sent[i] < rounds; ++num_sent[i]) {
            std::int32_t const value = me * 1000 + num_sent[i];
            ASSERT_EQ(ompx_channel_send(to[i], &value), 0);
        }
    }
    ompx_barrier(); // an end whose partner has freed its end is ready, too
    std::vector<ompx_channel_t> const none(3);
    std::size_t index = 0;
    EXPECT_EQ(ompx_channel_wait_any(none.data(), none.size(), &index), 0);
    EXPECT_EQ(index, OMPX_NO_INDEX);
    EXPECT_EQ(ompx_channel_wait_any(nullptr, 0, &index), 0);
    for (std::size_t i = 0; i < count; ++i) {
        EXPECT_EQ(num_received[i], rounds);
        ASSERT_EQ(ompx_channel_free(&from[i]), 0);
        ASSERT_EQ(ompx_channel_free(&to[i]), 0);
    }
}

TEST(channel, ready_ends_take_turns_in_wait_any) {
    std::array<ompx_channel_t, 2> to{};
    std::array<ompx_channel_t, 2> from{};
    for (int i = 0; i < 2; ++i) {
        auto const at = static_cast<std::size_t>(i);
        ASSERT_EQ(ompx_channel_create(me, 20 + i, OMPX_CHANNEL_SENDER, 4, 8, &to.at(at)), 0);
        ASSERT_EQ(ompx_channel_create(me, 20 + i, OMPX_CHANNEL_RECEIVER, 4, 8, &from.at(at)), 0);
        for (int n = 0; n < 8; ++n) {
            ASSERT_EQ(ompx_channel_send(to.at(at), &n), 0);
        }
    }
    std::array<int, 2> turns{};
    for (int n = 0; n < 8; ++n) {
        std::size_t index = 0;
        ASSERT_EQ(ompx_channel_wait_any(from.data(), from.size(), &index), 0);
        ++turns.at(index);
    }
    EXPECT_EQ(turns[0], 4);
    for (std::size_t i = 0; i < 2; ++i) {
        ASSERT_EQ(ompx_channel_free(&to.at(i)), 0);
        ASSERT_EQ(ompx_channel_free(&from.at(i)), 0);
    }
}

TEST(channel, threads_use_different_channels) {
    constexpr int threads = 4;
    std::atomic<int> failures{0};
    std::vector<std::thread> team;
    for (int t = 0; t < threads; ++t) {
        team.emplace_back([&failures, t] {
            ring const channels(30 + t, 24, 2);
            for (int n = 0; n < 100; ++n) {
                std::array<int, 6> block{};
                std::ranges::fill(block, me * 100000 + t * 1000 + n);
                failures += static_cast<int>(ompx_channel_send(channels.to, block.data()) != 0);
                auto const *const got =
                    static_cast<const int *>(ompx_channel_receive(channels.from));
                if (got == nullptr) {
                    ++failures;
                    return;
                }
                failures += static_cast<int>(!std::all_of(got, got + 6, [&](int value) {
                    return value == left * 100000 + t * 1000 + n;
                }));
                failures += static_cast<int>(ompx_channel_release(channels.from) != 0);
            }
        });
    }
    for (auto &each : team) {
        each.join();
    }
    EXPECT_EQ(failures, 0);
}

TEST(channel, a_computing_partner_does_not_hold_up_creation) {
    // The partner makes no call between its creation and the first message.
    ring const channels(40, 8, 1);
    std::int64_t const value = me;
    ASSERT_EQ(ompx_channel_send(channels.to, &value), 0);
    auto const *const got = static_cast<const std::int64_t *>(ompx_channel_receive(channels.from));
    ASSERT_NE(got, nullptr);
    EXPECT_EQ(*got, left);
}

TEST(channel, freed_ends_are_told_and_their_memory_comes_back) {
    ompx_segment_info_t before{};
    ompx_barrier();
    {
        ring const first(50, 4096, 4);
        std::vector<std::uint8_t> const block(4096, 1);
        ASSERT_EQ(ompx_channel_send(first.to, block.data()), 0);
        ASSERT_NE(ompx_channel_receive(first.from), nullptr);
    }
    ompx_barrier();
    {
        ring const second(50, 64, 1);
    } // releases what is unused by now
    ompx_segment_info(&before);
    for (int n = 0; n < 40; ++n) {
        ring const again(50, 1 << 16, 4);
        std::vector<std::uint8_t> const block(1 << 16, 1);
        ASSERT_EQ(ompx_channel_send(again.to, block.data()), 0);
        ASSERT_NE(ompx_channel_receive(again.from), nullptr);
        ompx_barrier();
    }
    ompx_barrier();
    {
        ring const last(50, 64, 1);
    }
    ompx_segment_info_t after{};
    ompx_segment_info(&after);
    EXPECT_LT(after.local_used, before.local_used + (10U << 16));
    ompx_barrier();
}

TEST(channel, memory_of_freed_ends_is_no_longer_counted) {
    ompx_segment_info_t before{};
    ASSERT_EQ(ompx_barrier(), 0);
    {
        ring const first(57, 64, 1);
    }
    ASSERT_EQ(ompx_barrier(), 0);
    ASSERT_EQ(ompx_segment_info(&before), 0);
    {
        ring const large(57, 1 << 20, 4);
        ASSERT_EQ(ompx_barrier(), 0);
    }
    ASSERT_EQ(ompx_barrier(), 0); // both ends are freed, and their ranks have said so
    ompx_segment_info_t after{};
    auto const end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    do {
        ASSERT_EQ(ompx_segment_info(&after), 0);
    } while (after.local_used > before.local_used && std::chrono::steady_clock::now() < end);
    EXPECT_LE(after.local_used, before.local_used);
    EXPECT_LE(after.num_allocations, before.num_allocations);
    ASSERT_EQ(ompx_barrier(), 0);
}

TEST(channel, a_receiver_gets_all_messages_of_a_freed_sender) {
    ompx_channel_t to = OMPX_CHANNEL_NONE;
    ompx_channel_t from = OMPX_CHANNEL_NONE;
    ASSERT_EQ(ompx_channel_create(right, 51, OMPX_CHANNEL_SENDER, 8, 3, &to), 0);
    ASSERT_EQ(ompx_channel_create(left, 51, OMPX_CHANNEL_RECEIVER, 8, 3, &from), 0);
    for (std::int64_t n = 0; n < 3; ++n) {
        ASSERT_EQ(ompx_channel_send(to, &n), 0);
    }
    ASSERT_EQ(ompx_channel_free(&to), 0);
    ompx_barrier();
    for (std::int64_t n = 0; n < 3; ++n) {
        auto const *const got = static_cast<const std::int64_t *>(ompx_channel_receive(from));
        ASSERT_NE(got, nullptr);
        EXPECT_EQ(*got, n);
        ASSERT_EQ(ompx_channel_release(from), 0);
    }
    EXPECT_EQ(ompx_channel_receive(from), nullptr) << "no rank sends another one";
    EXPECT_THAT(ompx_last_error(), testing::HasSubstr("has freed its end"));
    ASSERT_EQ(ompx_channel_free(&from), 0);
    ompx_barrier();
}

TEST(channel, a_sender_is_told_of_a_freed_receiver) {
    ompx_channel_t to = OMPX_CHANNEL_NONE;
    ompx_channel_t from = OMPX_CHANNEL_NONE;
    ASSERT_EQ(ompx_channel_create(right, 52, OMPX_CHANNEL_SENDER, 8, 1, &to), 0);
    ASSERT_EQ(ompx_channel_create(left, 52, OMPX_CHANNEL_RECEIVER, 8, 1, &from), 0);
    ASSERT_EQ(ompx_channel_free(&from), 0); // maybe before the partner has created its end
    std::int64_t const value = 1;
    int status = 0;
    for (int n = 0; n < 2 && status == 0; ++n) { // one may still find the buffer
        status = ompx_channel_send(to, &value);
    }
    EXPECT_EQ(status, OMPX_ERR_STATE);
    ASSERT_EQ(ompx_channel_free(&to), 0);
    ompx_barrier();
}

TEST(channel, ends_of_different_shapes_are_an_error_on_both_sides) {
    for (int const case_ : {0, 1}) {
        ompx_channel_t to = OMPX_CHANNEL_NONE;
        ompx_channel_t from = OMPX_CHANNEL_NONE;
        ASSERT_EQ(ompx_channel_create(right, 60, OMPX_CHANNEL_SENDER, 8, 2, &to), 0);
        ASSERT_EQ(ompx_channel_create(left, 60, OMPX_CHANNEL_RECEIVER, case_ == 0 ? 16 : 8,
                                      case_ == 0 ? 2 : 3, &from),
                  0);
        std::int64_t const value = 1;
        EXPECT_EQ(ompx_channel_send(to, &value), OMPX_ERR_MISMATCH);
        EXPECT_THAT(ompx_last_error(), testing::HasSubstr(case_ == 0 ? "2 x 16" : "3 x 8"));
        void *data = nullptr;
        ASSERT_EQ(ompx_channel_receive(from), nullptr);
        EXPECT_EQ(ompx_channel_try_receive(from, &data), OMPX_ERR_MISMATCH);
        ASSERT_EQ(ompx_channel_free(&to), 0);
        ASSERT_EQ(ompx_channel_free(&from), 0);
    }
    ompx_barrier();
}

TEST(channel, misuse_is_an_error) {
    ompx_channel_t end = OMPX_CHANNEL_NONE;
    EXPECT_EQ(ompx_channel_create(ranks, 0, OMPX_CHANNEL_SENDER, 8, 1, &end), OMPX_ERR_RANK);
    EXPECT_EQ(ompx_channel_create(-1, 0, OMPX_CHANNEL_SENDER, 8, 1, &end), OMPX_ERR_RANK);
    EXPECT_EQ(ompx_channel_create(me, 0, OMPX_CHANNEL_SENDER, 8, 0, &end), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_channel_create(me, 0, OMPX_CHANNEL_SENDER, 8, OMPX_CHANNEL_MAX_DEPTH + 1, &end),
              OMPX_ERR_ARG);
    EXPECT_EQ(ompx_channel_create(me, 0, static_cast<ompx_channel_end_t>(2), 8, 1, &end),
              OMPX_ERR_ARG);
    EXPECT_EQ(ompx_channel_create(me, 0, OMPX_CHANNEL_RECEIVER, SIZE_MAX, 1, &end), OMPX_ERR_ARG);
    EXPECT_THROW(diomp::channel_sender<double>(me, 0, SIZE_MAX / sizeof(double) + 2), diomp::error);
    EXPECT_THROW(diomp::channel_receiver<double>(me, 0, SIZE_MAX / sizeof(double) + 2),
                 diomp::error);
    EXPECT_EQ(ompx_channel_create(me, 0, OMPX_CHANNEL_RECEIVER, std::size_t{1} << 45, 1, &end),
              OMPX_ERR_NOMEM);
    EXPECT_EQ(ompx_channel_create(me, 0, OMPX_CHANNEL_RECEIVER, std::size_t{1} << 38, 2, &end),
              OMPX_ERR_NOMEM);
    EXPECT_EQ(ompx_channel_create(me, 0, OMPX_CHANNEL_SENDER, 8, 1, nullptr), OMPX_ERR_ARG);
    EXPECT_EQ(end, OMPX_CHANNEL_NONE);

    int value = 0;
    void *data = nullptr;
    std::size_t index = 0;
    auto *const garbage = reinterpret_cast<ompx_channel_t>(&value);
    for (ompx_channel_t const bad : {OMPX_CHANNEL_NONE, garbage}) {
        EXPECT_EQ(ompx_channel_send(bad, &value), OMPX_ERR_ARG);
        EXPECT_EQ(ompx_channel_receive(bad), nullptr);
        EXPECT_EQ(ompx_channel_release(bad), OMPX_ERR_ARG);
        EXPECT_EQ(ompx_channel_commit(bad), OMPX_ERR_ARG);
        EXPECT_EQ(ompx_channel_test(bad), OMPX_ERR_ARG);
    }
    EXPECT_EQ(ompx_channel_wait_any(&garbage, 1, &index), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_channel_wait_any(nullptr, 1, &index), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_channel_wait_any(&garbage, 1, nullptr), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_channel_free(nullptr), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_channel_free(&end), 0) << "nothing to free";

    ring const channels(70, 4, 1);
    std::size_t nbytes = 0;
    EXPECT_EQ(ompx_channel_nbytes(channels.to, &nbytes), 0);
    EXPECT_EQ(nbytes, 4U);
    EXPECT_EQ(ompx_channel_nbytes(channels.to, nullptr), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_channel_nbytes(garbage, &nbytes), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_channel_send(channels.from, &value), OMPX_ERR_STATE);
    EXPECT_EQ(ompx_channel_receive(channels.to), nullptr);
    EXPECT_EQ(ompx_channel_try_receive(channels.to, &data), OMPX_ERR_STATE);
    EXPECT_EQ(ompx_channel_release(channels.to), OMPX_ERR_STATE);
    EXPECT_EQ(ompx_channel_commit(channels.from), OMPX_ERR_STATE);
    EXPECT_EQ(ompx_channel_send(channels.to, nullptr), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_channel_try_receive(channels.from, nullptr), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_channel_try_acquire(channels.to, nullptr), OMPX_ERR_ARG);

    ompx_channel_t freed = OMPX_CHANNEL_NONE;
    ASSERT_EQ(ompx_channel_create(me, 71, OMPX_CHANNEL_SENDER, 4, 1, &freed), 0);
    ompx_channel_t copy = freed;
    ASSERT_EQ(ompx_channel_free(&freed), 0);
    EXPECT_EQ(ompx_channel_send(copy, &value), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_channel_free(&copy), OMPX_ERR_ARG);
    ompx_barrier();
}

TEST(channel_cpp, senders_and_receivers_of_elements) {
    diomp::channel_sender<double> to(right, 80, 10);
    diomp::channel_receiver<double> from(left, 80, 10);
    for (int n = 0; n < 10; ++n) {
        std::vector<double> block(10);
        std::iota(block.begin(), block.end(), me * 100.0 + n);
        if (n % 2 == 0) {
            to.send(block);
        } else {
            std::ranges::copy(block, to.acquire().begin());
            to.commit();
        }
        std::ranges::transform(block, block.begin(),
                               [](double value) { return value + (left - me) * 100.0; });
        EXPECT_THAT(from.receive(), testing::ElementsAreArray(block));
        from.release();
    }
    EXPECT_FALSE(from.try_receive().has_value());
    ompx_barrier(); // the left neighbour has sent no more, and the right one has released all
    EXPECT_TRUE(to.try_acquire().has_value());
    to.commit();
    while (!from.test()) {
    }
    EXPECT_EQ(diomp::channel_wait_any(std::array{from.get(), OMPX_CHANNEL_NONE}), 0U);
    EXPECT_TRUE(from.try_receive().has_value());
    std::vector<double> const too_few(9);
    EXPECT_THROW(to.send(too_few), diomp::error);
    from.release();
    EXPECT_THROW(from.release(), diomp::error);
    ompx_barrier();
}

TEST(channel, memory_is_free_when_both_ends_are) {
    auto const used = [] {
        ompx_segment_info_t about{};
        EXPECT_EQ(ompx_segment_info(&about), 0);
        return about.local_used;
    };
    ompx_free(ompx_alloc(64, 64, OMPX_MEM_LOCAL)); // frees what is left of earlier channels
    ompx_barrier();
    auto const before = used();
    ompx_channel_t to = OMPX_CHANNEL_NONE;
    ompx_channel_t from = OMPX_CHANNEL_NONE;
    ASSERT_EQ(ompx_channel_create(right, 77, OMPX_CHANNEL_SENDER, 1 << 20, 2, &to), 0);
    ASSERT_EQ(ompx_channel_create(left, 77, OMPX_CHANNEL_RECEIVER, 1 << 20, 2, &from), 0);
    EXPECT_GE(used(), before + (2U << 20));
    EXPECT_EQ(ompx_channel_free(&from), 0);
    ompx_barrier();
    EXPECT_EQ(ompx_channel_free(&to), 0);
    auto const give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (used() > before && std::chrono::steady_clock::now() < give_up) {
        ompx_progress();
        ompx_free(ompx_alloc(64, 64, OMPX_MEM_LOCAL));
    }
    EXPECT_LE(used(), before); // less, if an earlier channel was still to be freed
    ompx_barrier();
}

} // namespace
