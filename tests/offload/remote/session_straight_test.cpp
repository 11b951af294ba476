// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Transfers between a client's memory and that of a GPU which the network reaches.
#include "offload/remote/straight_side.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace diomp::offload::service {
namespace {

using namespace diomp_test;
using testing::HasSubstr;
using transport::memory_kind;

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
        std::uint64_t const kernel = load(side, {{kernel_name, 0}})[0].address;
        std::uint64_t const there = ask_for(side, frame::allocate, large);
        bytes const first = pattern(large, 1);
        bytes const second = pattern(100, 2);
        bytes back(large);
        packet_writer batch;
        append(batch, operation::fetch, there, first.data(), large);
        append(batch, operation::fetch, there + 50, second.data(), 100); // it overlaps
        append_kernel(batch, kernel, there, large);
        append(batch, operation::deliver, there, back.data(), large);
        append_kernel(batch, kernel, there, large);
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
                EXPECT_THAT(got.rest, HasSubstr("not memory of the device"));
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

/// LLVM's plugins take any address.
TEST(session_straight, what_goes_by_way_of_the_plugin_is_looked_at_too) {
    run(gpus(), [](client_side &side) {
        constexpr std::size_t size = 8192;
        std::uint64_t const there = ask_for(side, frame::allocate, size);
        std::uint64_t const gone = ask_for(side, frame::allocate, size);
        EXPECT_EQ(ask_for(side, frame::release, gone), gone);
        auto const found = load(side, {{"count", 4}, {"fixed", 16}});
        bytes const before = pattern(size, 3);
        bring(side, there, before);
        for (std::uint64_t const address :
             {std::uint64_t{16}, there - 1, there + size - 3, gone, found[0].address + 1,
              found[1].address + 13, ~std::uint64_t{0} - 1}) {
            packet_writer puts;
            side.put(puts, address, "four");
            packet_writer gets;
            side.get(gets, address, 4);
            packet_writer copies_from;
            side.copy(copies_from, 1, there, address, 4);
            packet_writer copies_to;
            side.copy(copies_to, 1, address, there, 4);
            for (packet_writer *each : {&puts, &gets, &copies_from, &copies_to}) {
                auto const got = side.ask(std::move(*each));
                EXPECT_TRUE(got.failed) << std::hex << address;
                EXPECT_THAT(got.rest, HasSubstr("not memory of the device"));
            }
        }
        EXPECT_EQ(used().copies.load(), 0);
        EXPECT_EQ(take(side, there, size), before);
        packet_writer right;
        side.put(right, found[0].address, "four");
        side.copy(right, 1, there, found[0].address, 4);
        side.get(right, found[1].address + 12, 4);
        side.get(right, there, 4);
        auto const got = side.ask(std::move(right));
        EXPECT_FALSE(got.failed) << got.rest;
        EXPECT_EQ(got.rest.substr(4), "four");
    });
}

// ---- Variables of images

TEST(session_straight, variables_of_an_image) {
    run(gpus(), [](client_side &side) {
        constexpr std::size_t size = 300000 * sizeof(double);
        auto const found = load(
            side, {{"values", size}, {"count", 4}, {"fixed", 16}, {"twice", 8}, {"no_symbol", 8}});
        EXPECT_TRUE(found[0].is_variable);
        EXPECT_TRUE(found[1].is_variable);
        EXPECT_FALSE(found[2].is_variable) << "nobody writes it";
        EXPECT_FALSE(found[3].is_variable) << "a function";
        EXPECT_EQ(found[4], remote::location{});
        bytes const sent = pattern(size, 1);
        bring(side, found[0].address, sent);
        bytes const part = pattern(5000, 2);
        bring(side, found[0].address + size - 5000, part);
        bytes expected = sent;
        std::copy(part.begin(), part.end(), expected.end() - 5000);
        EXPECT_EQ(take(side, found[0].address, size), expected);
        EXPECT_EQ(take(side, found[0].address + 8, 5000),
                  bytes(expected.begin() + 8, expected.begin() + 5008));
        EXPECT_EQ(used().copies.load(), 0);
    });
}

TEST(session_straight, addresses_outside_of_variables_are_errors) {
    run(gpus(), [](client_side &side) {
        constexpr std::size_t size = 300000 * sizeof(double);
        auto const found =
            load(side, {{"values", size}, {"fixed", 16}, {"twice", 8}, {"count", 8}});
        EXPECT_FALSE(found[3].is_variable) << "it has 4 bytes";
        bytes const before = pattern(size, 1);
        bring(side, found[0].address, before);
        bytes other(size, 0x22);
        for (auto const &[address, nbytes] :
             {std::pair{found[0].address + 1, size}, std::pair{found[0].address - 1, size},
              std::pair{found[0].address + 8, ~std::size_t{0}},
              std::pair{found[1].address, std::size_t{16}},
              std::pair{found[2].address, std::size_t{8}},
              std::pair{found[3].address, std::size_t{4}}}) {
            for (operation const way : {operation::fetch, operation::deliver}) {
                packet_writer batch;
                append(batch, way, address, other.data(), nbytes);
                auto const got = side.ask(std::move(batch));
                EXPECT_TRUE(got.failed) << std::hex << address << " of " << nbytes;
                EXPECT_THAT(got.rest, HasSubstr("nor in a variable"));
            }
        }
        EXPECT_EQ(ask_for(side, frame::release, found[0].address), 0U) << "nobody allocated it";
        EXPECT_EQ(take(side, found[0].address, size), before);
        EXPECT_EQ(other, bytes(size, 0x22));
    });
}

/// Of processors it is the one memory that is not the slot.
TEST(session_straight, variables_of_an_image_for_processors) {
    session_setting setting = gpus();
    setting.kind = "cpu";
    run(setting, [](client_side &side) {
        EXPECT_EQ(side.ranks->device_memory(world_rank(1)), memory_kind::host);
        constexpr std::size_t size = 300000 * sizeof(double);
        auto const found = load(side, {{"values", size}, {"fixed", 16}, {"twice", 8}});
        EXPECT_TRUE(found[0].is_variable);
        EXPECT_FALSE(found[1].is_variable);
        EXPECT_FALSE(found[2].is_variable);
        bytes const sent = pattern(size, 1);
        bring(side, found[0].address, sent);
        EXPECT_EQ(take(side, found[0].address, size), sent);
        packet_writer batch;
        append(batch, operation::fetch, found[0].address, sent.data(), std::size_t{1} << 30);
        EXPECT_THAT(side.ask(std::move(batch)).rest, HasSubstr("not memory of the device"));
    });
}

// ---- Where the network cannot access memory of this device the memory, the session says so and
// nothing moves.

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
            EXPECT_THAT(got.rest, HasSubstr("cannot access memory of this device"));
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

} // namespace
} // namespace diomp::offload::service
