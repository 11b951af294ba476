// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/remote/protocol.h"
#include "offload/remote/samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

namespace diomp::offload::remote {
namespace {

using diomp_test::packet_kind;
using diomp_test::read_and_write;
using diomp_test::sample;
using diomp_test::samples;

TEST(remote_protocol, packets_survive_the_wire) {
    for (sample const &each : samples()) {
        EXPECT_EQ(read_and_write(each.kind, each.bytes), each.bytes) << static_cast<int>(each.kind);
    }
}

TEST(remote_protocol, fields_survive_the_wire) {
    auto const all = samples();
    packet_reader joining(all[0].bytes);
    ASSERT_EQ(joining.type<frame>(), frame::join);
    auto const join = decode_join(joining);
    ASSERT_TRUE(join.ok());
    EXPECT_EQ(join.value().rank, 2U);
    EXPECT_EQ(join.value().size, 5U);
    EXPECT_EQ(join.value().conduit, "tcp");
    EXPECT_TRUE(join.value().is_on_one_host);
    EXPECT_TRUE(join.value().encrypts_data);
    EXPECT_EQ(join.value().node_size, 3U);
    packet_reader accepted(all[1].bytes);
    ASSERT_EQ(accepted.type<frame>(), frame::accepted);
    auto const offered = decode_device_description(accepted);
    ASSERT_TRUE(offered.ok());
    EXPECT_EQ(offered.value().memory_bytes, std::uint64_t{1} << 40);
    EXPECT_EQ(offered.value().name, "a processor");
    EXPECT_EQ(offered.value().identity, (transport::host_identity{"hosta-12-34", "5678"}));
    packet_reader loading(all[2].bytes);
    ASSERT_EQ(loading.type<frame>(), frame::load);
    auto const load = decode_load(loading);
    ASSERT_TRUE(load.ok());
    EXPECT_EQ(load.value().symbols[2], (symbol{"third", std::uint64_t{1} << 33}));
    packet_reader launching(all[4].bytes);
    ASSERT_EQ(launching.type<operation>(), operation::launch);
    auto const launch = decode_launch(launching);
    EXPECT_EQ(launch.kernel, 0x7f0012345678U);
    EXPECT_EQ(launch.num_teams[1], 7U);
    EXPECT_EQ(launch.thread_limit[2], 9U);
    EXPECT_EQ(launch.arguments.size(), 40U);
    auto const answer = decode_reply(all[5].bytes);
    ASSERT_TRUE(answer.ok());
    EXPECT_EQ(answer.value().batch, 77U);
    EXPECT_TRUE(answer.value().failed);
    EXPECT_EQ(answer.value().rest, "why it failed");
    auto const copy = decode_peer_copy(all[6].bytes);
    ASSERT_TRUE(copy.ok());
    EXPECT_EQ(copy.value().ticket, 9U);
    EXPECT_EQ(copy.value().transfer.address, 0x7f0000001000U);
    EXPECT_EQ(copy.value().transfer.peer_address, 0x7f0000002000U);
    EXPECT_EQ(copy.value().transfer.nbytes, 4097U);
    EXPECT_EQ(copy.value().source_memory, transport::memory_kind::hip);
}

TEST(remote_protocol, memory_of_no_known_kind_is_an_error) {
    std::string bytes = encode(peer_copy{});
    EXPECT_TRUE(decode_peer_copy(bytes).ok());
    bytes.back() = '\3';
    EXPECT_FALSE(decode_peer_copy(bytes).ok());
}

TEST(remote_protocol, packets_cut_short_are_errors_at_every_length) {
    for (sample const &each : samples()) {
        std::size_t const least = each.has_open_end ? reply_header_bytes : each.bytes.size();
        for (std::size_t size = 0; size < least; ++size) {
            EXPECT_EQ(read_and_write(each.kind, std::string_view(each.bytes).substr(0, size)), "")
                << static_cast<int>(each.kind) << " of " << size << " bytes";
        }
    }
}

TEST(remote_protocol, packets_with_more_behind_are_errors) {
    for (sample const &each : samples()) {
        if (each.kind != packet_kind::launch && !each.has_open_end) {
            EXPECT_EQ(read_and_write(each.kind, each.bytes + '\0'), "")
                << static_cast<int>(each.kind);
        }
    }
}

/// What is taken means the same when it is written and taken again.
TEST(remote_protocol, changed_packets_are_errors_or_other_packets) {
    std::mt19937 random(1);
    int taken = 0;
    for (int round = 0; round < 20000; ++round) {
        for (sample const &each : samples()) {
            std::string bytes = each.bytes;
            for (unsigned change = random() % 4 + 1; change > 0; --change) {
                std::size_t const at = random() % bytes.size();
                switch (random() % 4) {
                case 0:
                    bytes[at] = static_cast<char>(random());
                    break;
                case 1:
                    bytes[at] = random() % 2 == 0 ? '\0' : '\xff';
                    break;
                case 2:
                    bytes.insert(at, std::string(random() % 9 + 1, static_cast<char>(random())));
                    break;
                default:
                    bytes.erase(at, random() % 9 + 1);
                    bytes += bytes.empty() ? "x" : "";
                }
            }
            std::string const once = read_and_write(each.kind, bytes);
            if (!once.empty()) {
                ++taken;
                EXPECT_EQ(read_and_write(each.kind, once), once);
                EXPECT_LE(once.size(), bytes.size());
            }
        }
    }
    EXPECT_GT(taken, 0);
}

TEST(remote_protocol, a_count_that_is_no_count_takes_no_memory) {
    packet_writer packet(frame::load);
    for (int i = 0; i < 3; ++i) {
        packet.number(std::uint64_t{1});
    }
    packet.number(~std::uint32_t{0}); // symbols
    std::string const bytes = packet.take();
    EXPECT_EQ(read_and_write(packet_kind::load, bytes), "");
}

TEST(remote_protocol, ranks_that_are_no_session_are_errors) {
    for (auto const &[rank, size] :
         {std::pair(0U, 2U), std::pair(2U, 2U), std::pair(3U, 2U), std::pair(1U, max_ranks + 1)}) {
        join_frame join;
        join.rank = rank;
        join.size = size;
        EXPECT_EQ(read_and_write(packet_kind::join, encode(join)), "") << rank << " of " << size;
    }
}

TEST(remote_protocol, clients_that_are_not_in_the_world_are_errors) {
    join_frame join;
    join.size = 5;
    join.num_clients = 2;
    for (auto const &[rank, client, is_valid] :
         {std::tuple(2U, 1U, true), std::tuple(2U, 2U, false), std::tuple(1U, 0U, false)}) {
        join.rank = rank;
        join.client = client;
        EXPECT_EQ(!read_and_write(packet_kind::join, encode(join)).empty(), is_valid)
            << rank << " of client " << client;
    }
}

TEST(remote_protocol, services_without_devices_offer_nothing) {
    EXPECT_EQ(read_and_write(packet_kind::device_description, encode(device_description{})), "");
}

TEST(remote_protocol, images_are_known_by_all_their_bytes) {
    std::string image(5000, 'i');
    std::set<std::string> names{to_string(identify(image)), to_string(identify(image + 'i'))};
    for (std::size_t const at : {0U, 1U, 2500U, 4999U}) {
        std::string other = image;
        other[at] ^= 1;
        names.insert(to_string(identify(other)));
    }
    EXPECT_EQ(names.size(), 6U);
    EXPECT_EQ(identify(image), identify(std::string(5000, 'i')));
    EXPECT_EQ(to_string({5000, 1, 2}), "00000000000000020000000000000001-5000");
}

} // namespace
} // namespace diomp::offload::remote
