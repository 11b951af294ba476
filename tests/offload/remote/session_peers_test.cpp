// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Copies between sessions of GPUs whose memory the network reaches.
#include "offload/remote/straight_side.h"
#include "offload/service/peer_fetches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <utility>

namespace diomp::offload::service {
namespace {

using namespace diomp_test;
using testing::HasSubstr;
using transport::memory_kind;

TEST(session_peers, from_one_device_to_another) {
    run(gpus(2), [](client_side &side) {
        std::uint64_t const here = ask_for(side, frame::allocate, large, 1);
        std::uint64_t const there = ask_for(side, frame::allocate, large, 2);
        bytes const sent = pattern(large, 5);
        bring(side, here, sent);
        bring(side, there, bytes(large, 0), 2);
        packet_writer batch;
        side.copy(batch, 2, there + 8, here + 16, large - 16);
        auto const got = side.ask(std::move(batch));
        EXPECT_FALSE(got.failed) << got.rest;
        bytes expected(large, 0);
        std::copy(sent.begin() + 16, sent.end(), expected.begin() + 8);
        EXPECT_EQ(take(side, there, large, 2), expected);
        EXPECT_EQ(used().copies.load(), 0);
    });
}

/// All threads of both sessions that run batches wait for the other one.
TEST(session_peers, copies_both_ways_at_once) {
    run(gpus(2), [](client_side &side) {
        constexpr std::size_t nbytes = 10000;
        constexpr std::uint64_t queues = 80;
        std::uint64_t const memory[] = {ask_for(side, frame::allocate, 2 * queues * nbytes, 1),
                                        ask_for(side, frame::allocate, 2 * queues * nbytes, 2)};
        bytes const sent[] = {pattern(queues * nbytes, 8), pattern(queues * nbytes, 9)};
        for (int from : {0, 1}) {
            bring(side, memory[from], sent[from], from + 1);
        }
        for (std::uint64_t i = 0; i < queues; ++i) {
            for (int from : {0, 1}) {
                packet_writer batch;
                side.copy(batch, static_cast<std::uint32_t>(2 - from),
                          memory[1 - from] + (queues + i) * nbytes, memory[from] + i * nbytes,
                          nbytes);
                append_operation(batch, operation::finish);
                side.send(2 * i + static_cast<std::uint64_t>(from), 1, batch.take(), from + 1);
            }
        }
        for (std::uint64_t queue = 0; queue < 2 * queues; ++queue) {
            auto const got = side.wait_for(queue, 1);
            EXPECT_FALSE(got.failed) << got.rest;
        }
        for (int from : {0, 1}) {
            EXPECT_EQ(take(side, memory[1 - from] + queues * nbytes, queues * nbytes, 2 - from),
                      sent[from]);
        }
    });
}

TEST(session_peers, between_a_device_and_the_slot_of_another) {
    run(gpus(2), [](client_side &side) {
        std::uint64_t const here = ask_for(side, frame::allocate, 100000, 1);
        std::uint64_t const slot = side.ranks->memory_of(world_rank(2));
        bytes const sent = pattern(100000, 6);
        bring(side, here, sent);
        packet_writer there;
        side.copy(there, 2, slot, here, 100000);
        auto const got = side.ask(std::move(there));
        EXPECT_FALSE(got.failed) << got.rest;
        bring(side, here, bytes(100000, 0));
        packet_writer back;
        side.copy(back, 1, here, slot, 100000);
        auto const again = side.ask(std::move(back), 2);
        EXPECT_FALSE(again.failed) << again.rest;
        EXPECT_EQ(take(side, here, 100000), sent);
        EXPECT_EQ(used().copies.load(), 0);
    });
}

TEST(session_peers, both_owners_look_at_their_addresses) {
    run(gpus(2), [](client_side &side) {
        std::uint64_t const here = ask_for(side, frame::allocate, 8192, 1);
        std::uint64_t const there = ask_for(side, frame::allocate, 8192, 2);
        bring(side, there, bytes(8192, 1), 2);
        for (auto const &[to, from] :
             {std::pair{there + 1, here}, std::pair{there, here + 1},
              std::pair{std::uint64_t{0}, here}, std::pair{there, std::uint64_t{0}}}) {
            packet_writer batch;
            side.copy(batch, 2, to, from, 8192);
            auto const got = side.ask(std::move(batch));
            EXPECT_TRUE(got.failed);
            EXPECT_THAT(got.rest, HasSubstr("not memory of the device"));
        }
        EXPECT_EQ(take(side, there, 8192, 2), bytes(8192, 1));
        side.expect_service();
    });
}

TEST(session_peers, who_waits_for_a_lost_device_is_told) {
    run(gpus(2), [](client_side &side) {
        std::uint64_t const here = ask_for(side, frame::allocate, 8192, 1);
        std::uint64_t const there = ask_for(side, frame::allocate, 8192, 2);
        ::kill(side.processes[1], SIGSTOP);
        packet_writer batch;
        side.copy(batch, 2, there, here, 8192);
        append_operation(batch, operation::finish);
        side.send(1, 1, batch.take());
        side.expect_service();
        EXPECT_FALSE(side.has_answer(1, 1));
        packet_writer lost(frame::lost);
        lost.number(std::uint32_t{2});
        lost.text("the other one is gone");
        EXPECT_TRUE(side.links[0]->send(lost.take()).ok());
        auto const got = side.wait_for(1, 1);
        EXPECT_TRUE(got.failed);
        EXPECT_EQ(got.rest, "the other one is gone");
        packet_writer later;
        side.copy(later, 2, there, here, 8192);
        EXPECT_EQ(side.ask(std::move(later)).rest, "the other one is gone");
        ::kill(side.processes[1], SIGCONT);
    });
}

/// Sessions 1 and 2 copy to 3. Whoever reads what 1 copies from waits until used().may_pass.
struct slow_peer {
    static constexpr std::size_t nbytes = 100;
    static constexpr std::size_t most = 4096;

    explicit slow_peer(client_side &between) : side(between) {
        slow = ask_for(side, frame::allocate, most, 1);
        quick = ask_for(side, frame::allocate, most, 2);
        there = ask_for(side, frame::allocate, most, 3);
        bring(side, slow, pattern(most, 1), 1);
        bring(side, quick, pattern(most, 2), 2);
        bring(side, there, bytes(most, 0), 3);
        packet_writer batch;
        append_kernel(batch, load(side, {{guard_name, 0}})[0].address, slow, most);
        EXPECT_FALSE(side.ask(std::move(batch)).failed);
    }
    void send_slow(std::uint64_t queue, std::size_t part) const {
        packet_writer batch;
        side.copy(batch, 3, there + part * nbytes, slow + part * nbytes, nbytes);
        append_operation(batch, operation::finish);
        side.send(queue, 1, batch.take(), 1);
    }
    /// Session 3 has asked session 1 for the bytes.
    static void wait_for_touch() {
        auto const end = std::chrono::steady_clock::now() + std::chrono::duration<double>(limit_s);
        while (!used().touched.load() && std::chrono::steady_clock::now() < end) {
            ::usleep(1000);
        }
        EXPECT_TRUE(used().touched.load());
    }
    void expect_quick_copy(std::size_t part) const {
        packet_writer batch;
        side.copy(batch, 3, there + part * nbytes, quick + part * nbytes, nbytes);
        auto const got = side.ask(std::move(batch), 2);
        EXPECT_FALSE(got.failed) << got.rest;
        EXPECT_EQ(take(side, there + part * nbytes, nbytes, 3), part_of(2, part));
    }
    static bytes part_of(unsigned seed, std::size_t part) {
        bytes const all = pattern(most, seed);
        auto const begin = all.begin() + static_cast<std::ptrdiff_t>(part * nbytes);
        return {begin, begin + nbytes};
    }

    client_side &side;
    std::uint64_t slow = 0;
    std::uint64_t quick = 0;
    std::uint64_t there = 0;
};

/// More copies than one session may have under way are asked for by the slow one.
TEST(session_peers, a_slow_session_holds_up_no_other) {
    run(gpus(3), [](client_side &side) {
        constexpr std::size_t queues = 3 * peer_fetches::max_concurrent;
        slow_peer const peers(side);
        for (std::size_t i = 0; i < queues; ++i) {
            peers.send_slow(i, i);
        }
        slow_peer::wait_for_touch();
        for (std::size_t i = queues; i < queues + 5; ++i) {
            peers.expect_quick_copy(i);
        }
        for (std::size_t i = 0; i < queues; ++i) {
            EXPECT_FALSE(side.has_answer(i, 1));
        }
        used().may_pass = true;
        for (std::size_t i = 0; i < queues; ++i) {
            auto const got = side.wait_for(i, 1);
            EXPECT_FALSE(got.failed) << got.rest;
            EXPECT_EQ(take(side, peers.there + i * slow_peer::nbytes, slow_peer::nbytes, 3),
                      slow_peer::part_of(1, i));
        }
    });
}

TEST(session_peers, memory_stays_while_a_lost_session_may_still_answer) {
    run(gpus(3), [](client_side &side) {
        constexpr std::size_t queues = 3 * peer_fetches::max_concurrent;
        slow_peer const peers(side);
        std::uint64_t const spare = ask_for(side, frame::allocate, 4096, 3);
        for (std::size_t i = 0; i < queues; ++i) {
            peers.send_slow(i, i);
        }
        slow_peer::wait_for_touch();
        packet_writer lost(frame::lost);
        lost.number(std::uint32_t{1});
        lost.text("the slow one is gone");
        EXPECT_TRUE(side.links[2]->send(lost.take()).ok());
        peers.expect_quick_copy(queues);
        EXPECT_EQ(ask_for(side, frame::release, peers.there, 3), peers.there);
        EXPECT_EQ(used().frees.load(), 0) << "its bytes may come at any time";
        EXPECT_EQ(ask_for(side, frame::release, spare, 3), spare);
        EXPECT_EQ(used().frees.load(), 1);
        used().may_pass = true;
        auto const end = std::chrono::steady_clock::now() + std::chrono::duration<double>(limit_s);
        while (used().frees.load() < 2 && std::chrono::steady_clock::now() < end) {
            ::usleep(1000);
        }
        EXPECT_EQ(used().frees.load(), 2);
    });
}

TEST(session_peers, variables_of_images) {
    run(gpus(2), [](client_side &side) {
        constexpr std::size_t size = 300000 * sizeof(double);
        std::uint64_t const first = load(side, {{"values", size}}, 1)[0].address;
        std::uint64_t const second = load(side, {{"values", size}}, 2)[0].address;
        std::uint64_t const there = ask_for(side, frame::allocate, size, 2);
        bytes const sent = pattern(size, 3);
        bring(side, first, sent);
        for (auto const &[to, from] : {std::pair{second, first}, std::pair{there, first}}) {
            packet_writer batch;
            side.copy(batch, 2, to, from, size);
            auto const got = side.ask(std::move(batch));
            EXPECT_FALSE(got.failed) << got.rest;
            EXPECT_EQ(take(side, to, size, 2), sent);
        }
        packet_writer past;
        side.copy(past, 2, second + 8, first, size);
        EXPECT_THAT(side.ask(std::move(past)).rest, HasSubstr("nor in a variable"));
        EXPECT_EQ(used().copies.load(), 0);
    });
}

/// What only sessions send to each other.
TEST(session_peers, requests_of_a_client_and_nonsense_are_ignored) {
    run(gpus(), [](client_side &side) {
        std::uint64_t const there = ask_for(side, frame::allocate, 8192);
        bytes const before = pattern(8192, 2);
        bring(side, there, before);
        bytes const other(8192, 0x33);
        remote::peer_copy const asked{
            1, {there, reinterpret_cast<std::uint64_t>(other.data()), 8192}, memory_kind::host};
        for (std::string const &text : {encode(asked), std::string(), std::string(25, '\xff')}) {
            for (auto const handler :
                 {remote::world::copy_handler, remote::world::copy_reply_handler}) {
                side.ranks->engine().send(world_rank(1), handler, std::as_bytes(std::span(text)));
            }
        }
        EXPECT_EQ(take(side, there, 8192), before);
    });
}

} // namespace
} // namespace diomp::offload::service
