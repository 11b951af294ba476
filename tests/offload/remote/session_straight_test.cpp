// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sessions of a GPU whose memory the network reaches, over UCX. The GPU is scripted and its memory
// is one that processors load, so DIOMP_NETWORK_DEVICE_MEMORY=on is what reaches it.
#include "offload/remote/client_side.h"
#include "offload/remote/scripted_plugin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

namespace diomp::offload::service {
namespace {

using namespace diomp_test;
using conduit::memory_kind;
using testing::HasSubstr;

constexpr std::size_t large = std::size_t{3} << 20; // more than the slot has
using bytes = std::vector<unsigned char>;

session_setting gpus(int count = 1) {
    session_setting setting;
    setting.conduit = "ucx";
    setting.kind = "cuda";
    setting.device_memory = "on";
    setting.sessions = count;
    return setting;
}

void run(const session_setting &setting, const std::function<void(client_side &)> &body) {
    diomp_take_plugins(&scripted::table);
    static_cast<void>(used()); // before processes are forked
    used().copies = 0;
    used().frees = 0;
    used().launches = 0;
    run_sessions(setting, body);
}

/// Different everywhere.
bytes pattern(std::size_t nbytes, unsigned seed) {
    bytes made(nbytes);
    for (std::size_t i = 0; i < nbytes; ++i) {
        made[i] = static_cast<unsigned char>(i * 2654435761U >> 11 ^ seed * 101 ^ i);
    }
    return made;
}

std::uint64_t ask_for(client_side &side, frame what, std::uint64_t value, int rank = 1) {
    packet_writer question(what);
    question.number(value);
    std::string const answer = side.answer_to(question.take(), rank);
    packet_reader reader(answer);
    EXPECT_EQ(reader.type<frame>(), frame::done);
    return reader.number<std::uint64_t>();
}

void append(packet_writer &batch, operation way, std::uint64_t address, const void *here,
            std::size_t nbytes) {
    append_operation(batch, way);
    remote::append(
        batch, remote::straight_transfer{address, reinterpret_cast<std::uint64_t>(here), nbytes});
}

void bring(client_side &side, std::uint64_t address, const bytes &from, int rank = 1) {
    packet_writer batch;
    append(batch, operation::fetch, address, from.data(), from.size());
    auto const got = side.ask(std::move(batch), rank);
    EXPECT_FALSE(got.failed) << got.rest;
}

bytes take(client_side &side, std::uint64_t address, std::size_t nbytes, int rank = 1) {
    bytes taken(nbytes, 0x5a);
    packet_writer batch;
    append(batch, operation::deliver, address, taken.data(), nbytes);
    auto const got = side.ask(std::move(batch), rank);
    EXPECT_FALSE(got.failed) << got.rest;
    return taken;
}

std::uint64_t load_kernel(client_side &side) {
    std::string const image = "an image";
    std::string const load =
        encode(remote::load_frame{remote::identify(image), {{kernel_name, 0}}});
    EXPECT_EQ(side.answer_to(load), packet_writer(frame::wanted).take());
    packet_writer packet(frame::image);
    packet.bytes(image);
    std::string const answer = side.answer_to(packet.take());
    packet_reader reader(answer);
    EXPECT_EQ(reader.type<frame>(), frame::loaded);
    return reader.number<std::uint64_t>();
}

TEST(session_straight, bytes_go_past_the_slot_and_are_whole) {
    run(gpus(), [](client_side &side) {
        EXPECT_EQ(side.ranks->device_memory(world_rank(1)), memory_kind::cuda);
        std::uint64_t const there = ask_for(side, frame::allocate, large + 2);
        int seed = 0;
        for (std::size_t const nbytes : {std::size_t{1}, std::size_t{5000}, large}) {
            bring(side, there, bytes(large + 2, 0xee));
            bytes const sent = pattern(nbytes, static_cast<unsigned>(++seed));
            bring(side, there + 1, sent);
            bytes const back = take(side, there, nbytes + 2);
            EXPECT_EQ(back.front(), 0xee);
            EXPECT_EQ(back.back(), 0xee);
            EXPECT_EQ(std::memcmp(back.data() + 1, sent.data(), nbytes), 0) << nbytes;
        }
        EXPECT_EQ(used().copies.load(), 0);
        EXPECT_TRUE(used().entered.load()) << "UCX's threads have the device current";
    });
}

TEST(session_straight, operations_of_a_queue_happen_in_order) {
    run(gpus(), [](client_side &side) {
        std::uint64_t const kernel = load_kernel(side);
        std::uint64_t const there = ask_for(side, frame::allocate, large);
        bytes const first = pattern(large, 1);
        bytes const second = pattern(100, 2);
        bytes back(large);
        std::uint64_t const arguments[] = {there, large};
        remote::launch_arguments launch;
        launch.kernel = kernel;
        launch.arguments = {reinterpret_cast<const char *>(arguments), sizeof arguments};
        packet_writer batch;
        append(batch, operation::fetch, there, first.data(), large);
        append(batch, operation::fetch, there + 50, second.data(), 100); // it overlaps
        append(batch, launch);
        append(batch, operation::deliver, there, back.data(), large);
        append(batch, launch);
        side.get(batch, there + 149, 2);
        side.put(batch, there + large - 3, "end");
        append(batch, operation::deliver, there + large - 100, back.data() + large - 100, 100);
        auto const got = side.ask(std::move(batch));
        EXPECT_FALSE(got.failed) << got.rest;
        bytes expected = first;
        std::copy(second.begin(), second.end(), expected.begin() + 50);
        for (unsigned char &each : expected) {
            ++each;
        }
        std::string const seen = {static_cast<char>(expected[149] + 1),
                                  static_cast<char>(expected[150] + 1)};
        for (std::size_t i = large - 100; i < large; ++i) {
            ++expected[i];
        }
        std::memcpy(expected.data() + large - 3, "end", 3);
        EXPECT_EQ(got.rest, seen);
        EXPECT_EQ(back, expected);
        EXPECT_EQ(used().launches.load(), 2);
    });
}

TEST(session_straight, many_side_by_side) {
    run(gpus(), [](client_side &side) {
        constexpr std::size_t count = 100;
        constexpr std::size_t nbytes = 20000;
        std::uint64_t const there = ask_for(side, frame::allocate, count * nbytes);
        bytes const sent = pattern(count * nbytes, 7);
        bytes back(count * nbytes);
        packet_writer batch;
        for (std::size_t i = 0; i < count; ++i) {
            std::size_t const at = i * 37 % count * nbytes;
            append(batch, operation::fetch, there + at, sent.data() + at, nbytes);
        }
        for (std::size_t i = 0; i < count; ++i) {
            append(batch, operation::deliver, there + i * nbytes, back.data() + i * nbytes, nbytes);
        }
        auto const got = side.ask(std::move(batch));
        EXPECT_FALSE(got.failed) << got.rest;
        EXPECT_EQ(back, sent);
    });
}

TEST(session_straight, addresses_outside_of_allocations_are_errors) {
    run(gpus(), [](client_side &side) {
        constexpr std::size_t size = 8192;
        std::uint64_t const there = ask_for(side, frame::allocate, size);
        std::uint64_t const gone = ask_for(side, frame::allocate, size);
        EXPECT_EQ(ask_for(side, frame::release, gone), gone);
        EXPECT_EQ(used().frees.load(), 1);
        bytes const before = pattern(size, 3);
        bring(side, there, before);
        bytes const unsent(size, 0x11);
        bytes untouched(size, 0x22);
        for (auto const &[address, nbytes] :
             {std::pair{std::uint64_t{0}, size}, std::pair{there - 1, size},
              std::pair{there + 1, size}, std::pair{there + size, std::size_t{1}},
              std::pair{there, size + 1}, std::pair{there + 8, ~std::size_t{0}},
              std::pair{~std::uint64_t{0} - 8, size}, std::pair{gone, size},
              std::pair{reinterpret_cast<std::uint64_t>(&used()), std::size_t{4}}}) {
            for (operation const way : {operation::fetch, operation::deliver}) {
                packet_writer batch;
                append(batch, way, address,
                       way == operation::fetch ? unsent.data() : untouched.data(), nbytes);
                auto const got = side.ask(std::move(batch));
                EXPECT_TRUE(got.failed) << std::hex << address << " of " << nbytes;
                EXPECT_THAT(got.rest, HasSubstr("no memory of the device"));
            }
        }
        EXPECT_EQ(ask_for(side, frame::release, there + 1), 0U);
        EXPECT_EQ(take(side, there, size), before);
        EXPECT_EQ(untouched, bytes(size, 0x22));
    });
}

TEST(session_straight, nothing_follows_an_error_and_what_was_under_way_ends) {
    run(gpus(), [](client_side &side) {
        std::uint64_t const there = ask_for(side, frame::allocate, large);
        bytes const sent = pattern(large, 4);
        bytes untouched(100, 0x22);
        packet_writer batch;
        append(batch, operation::fetch, there, sent.data(), large);
        append(batch, operation::fetch, 16, sent.data(), 100);
        append(batch, operation::deliver, there, untouched.data(), 100);
        EXPECT_TRUE(side.ask(std::move(batch)).failed);
        EXPECT_EQ(untouched, bytes(100, 0x22));
        EXPECT_EQ(take(side, there, large), sent);
    });
}

// ---- Where the network does not reach the memory, the session says so and nothing moves.

void expect_unreached(const session_setting &setting) {
    run(setting, [](client_side &side) {
        EXPECT_FALSE(side.ranks->device_memory(world_rank(1)).has_value());
        std::uint64_t const there = ask_for(side, frame::allocate, 8192);
        bytes untouched(8192, 0x22);
        for (operation const way : {operation::fetch, operation::deliver}) {
            packet_writer batch;
            append(batch, way, there, untouched.data(), untouched.size());
            auto const got = side.ask(std::move(batch));
            EXPECT_TRUE(got.failed);
            EXPECT_THAT(got.rest, HasSubstr("does not reach"));
        }
        EXPECT_EQ(untouched, bytes(8192, 0x22));
        side.expect_service();
    });
}

TEST(session_straight, off_at_the_service) {
    session_setting setting = gpus();
    setting.device_memory = "off";
    expect_unreached(setting);
}

TEST(session_straight, off_at_the_client) {
    session_setting setting = gpus();
    setting.client_device_memory = "off";
    expect_unreached(setting);
}

TEST(session_straight, not_over_tcp) {
    session_setting setting = gpus();
    setting.conduit = "tcp";
    expect_unreached(setting);
}

TEST(session_straight, host_devices_are_none_of_it_unless_told_to_be) {
    session_setting setting = gpus();
    setting.kind = "host";
    setting.device_memory = "auto";
    expect_unreached(setting);
    setting.device_memory = "on";
    run(setting, [](client_side &side) {
        EXPECT_EQ(side.ranks->device_memory(world_rank(1)), memory_kind::cuda);
    });
}

// ---- From device to device

TEST(session_straight, from_one_device_to_another) {
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
TEST(session_straight, copies_both_ways_at_once) {
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

TEST(session_straight, between_a_device_and_the_slot_of_another) {
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

TEST(session_straight, both_owners_look_at_their_addresses) {
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
            EXPECT_THAT(got.rest, HasSubstr("no memory of the device"));
        }
        EXPECT_EQ(take(side, there, 8192, 2), bytes(8192, 1));
        side.expect_service();
    });
}

TEST(session_straight, who_waits_for_a_lost_device_is_told) {
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

/// What only sessions send to each other.
TEST(session_straight, requests_of_a_client_and_nonsense_are_ignored) {
    run(gpus(), [](client_side &side) {
        std::uint64_t const there = ask_for(side, frame::allocate, 8192);
        bytes const before = pattern(8192, 2);
        bring(side, there, before);
        bytes const other(8192, 0x33);
        remote::peer_copy const asked{
            1, {there, reinterpret_cast<std::uint64_t>(other.data()), 8192}, memory_kind::host};
        for (std::string const &text : {encode(asked), std::string(), std::string(25, '\xff')}) {
            for (auto const handler :
                 {remote::world::copy_handler, remote::world::copied_handler}) {
                side.ranks->engine().send(world_rank(1), handler, std::as_bytes(std::span(text)));
            }
        }
        EXPECT_EQ(take(side, there, 8192), before);
    });
}

} // namespace
} // namespace diomp::offload::service
