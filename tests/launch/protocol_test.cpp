// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "launch/local/protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace diomp::launch::local {
namespace {

std::vector<entry> decode_all(const std::vector<std::string> &packets) {
    std::vector<entry> items;
    for (const std::string &bytes : packets) {
        packet_reader packet(bytes);
        EXPECT_EQ(packet.type<packet_type>(), packet_type::entries);
        EXPECT_TRUE(decode_entries(packet, items).ok());
    }
    return items;
}

TEST(protocol, welcome_survives_the_wire) {
    rank_info_packet sent;
    sent.rank = 3;
    sent.size = 7;
    sent.node_first = 2;
    sent.node_size = 4;
    sent.job_id = "host-12-abc";
    sent.host = "host";
    auto const received = decode_rank_info(encode_rank_info(sent));
    ASSERT_TRUE(received.ok()) << received.failure().message();
    EXPECT_EQ(received.value().rank, 3U);
    EXPECT_EQ(received.value().size, 7U);
    EXPECT_EQ(received.value().node_first, 2U);
    EXPECT_EQ(received.value().node_size, 4U);
    EXPECT_EQ(received.value().job_id, "host-12-abc");
    EXPECT_EQ(received.value().host, "host");
}

TEST(protocol, welcome_of_another_version_names_both) {
    rank_info_packet sent;
    sent.version = protocol_version + 5;
    auto const received = decode_rank_info(encode_rank_info(sent));
    ASSERT_FALSE(received.ok());
    EXPECT_THAT(received.failure().message(),
                testing::AllOf(testing::HasSubstr(std::to_string(protocol_version)),
                               testing::HasSubstr(std::to_string(protocol_version + 5))));
}

TEST(protocol, welcome_cut_short_is_an_error_at_every_length) {
    rank_info_packet sent;
    sent.job_id = "job";
    sent.host = "host";
    std::string const whole = encode_rank_info(sent);
    for (std::size_t size = 0; size < whole.size(); ++size) {
        EXPECT_FALSE(decode_rank_info(std::string_view(whole).substr(0, size)).ok()) << size;
    }
}

TEST(protocol, welcome_with_rank_outside_the_world_is_an_error) {
    rank_info_packet sent;
    sent.rank = 4;
    sent.size = 4;
    EXPECT_FALSE(decode_rank_info(encode_rank_info(sent)).ok());
}

TEST(protocol, welcome_with_a_node_that_cannot_be_is_an_error) {
    struct {
        std::uint32_t first, size;
        bool fine;
    } const cases[] = {{2, 2, true},  {0, 4, true},  {3, 1, true},          {0, 2, false},
                       {4, 1, false}, {2, 3, false}, {2, 0xffffffff, false}};
    for (auto const &each : cases) {
        rank_info_packet sent;
        sent.rank = 3;
        sent.size = 4;
        sent.node_first = each.first;
        sent.node_size = each.size;
        EXPECT_EQ(decode_rank_info(encode_rank_info(sent)).ok(), each.fine)
            << each.first << " " << each.size;
    }
}

TEST(protocol, many_entries_are_split_into_packets_that_fit) {
    std::vector<entry> items;
    for (std::uint32_t i = 0; i < 300; ++i) {
        items.push_back({i, "key" + std::to_string(i), std::string(i * 7, 'a')});
    }
    items.push_back({1, "largest", std::string(max_entry_bytes - 7, 'z')});
    auto const packets = encode_entries(items);
    EXPECT_GT(packets.size(), 1U);
    for (const std::string &packet : packets) {
        EXPECT_LE(packet.size(), max_packet_bytes);
    }
    EXPECT_EQ(decode_all(packets), items);
}

TEST(protocol, values_may_hold_any_byte) {
    std::vector<entry> const items{{0, "", std::string("\0\n\xff", 3)},
                                   {1, std::string(1, '\0'), ""}};
    EXPECT_EQ(decode_all(encode_entries(items)), items);
}

TEST(protocol, no_entries_need_no_packet) { EXPECT_TRUE(encode_entries({}).empty()); }

TEST(protocol, entries_cut_short_are_an_error) {
    auto const packets = encode_entries({{1, "key", "value"}});
    std::vector<entry> items;
    packet_reader packet(std::string_view(packets[0]).substr(0, packets[0].size() - 1));
    EXPECT_EQ(packet.type<packet_type>(), packet_type::entries);
    EXPECT_FALSE(decode_entries(packet, items).ok());
}

TEST(protocol, a_length_larger_than_the_packet_is_not_followed) {
    packet_writer writer(packet_type::abort);
    writer.number(std::uint32_t{0xffffffff});
    std::string const bytes = writer.take();
    packet_reader packet(bytes);
    EXPECT_EQ(packet.type<packet_type>(), packet_type::abort);
    EXPECT_EQ(packet.text(), "");
    EXPECT_FALSE(packet.ok());
}

} // namespace
} // namespace diomp::launch::local
