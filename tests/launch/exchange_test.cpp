// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "core/exchange.h"

#include <gtest/gtest.h>

namespace diomp::run {
namespace {

namespace local = launch::local;

std::vector<local::entry> entries_of(const std::vector<shared_packet> &packets) {
    std::vector<local::entry> items;
    for (const auto &bytes : packets) {
        packet_reader packet(*bytes);
        if (packet.type<local::packet_type>() == local::packet_type::entries) {
            EXPECT_TRUE(local::decode_entries(packet, items).ok());
        }
    }
    return items;
}

std::vector<local::entry> release(exchange &space) {
    return entries_of(release_packets(space.take_entries(), space.ranks(), false));
}

TEST(exchange, releases_when_the_last_rank_enters_and_sends_what_is_new) {
    exchange space(4, 2);
    space.add({{4, "a", "1"}});
    EXPECT_FALSE(space.enter_fence(4).value());
    space.add({{5, "b", "2"}});
    EXPECT_TRUE(space.enter_fence(5).value());
    EXPECT_EQ(release(space), (std::vector<local::entry>{{4, "a", "1"}, {5, "b", "2"}}));

    space.add({{5, "c", "3"}});
    EXPECT_FALSE(space.enter_fence(5).value());
    EXPECT_TRUE(space.enter_fence(4).value());
    EXPECT_EQ(release(space), (std::vector<local::entry>{{5, "c", "3"}}));
}

TEST(exchange, knows_who_is_late) {
    exchange space(4, 3);
    EXPECT_TRUE(space.late_ranks().empty()); // nobody waits
    ASSERT_TRUE(space.enter_fence(5));
    EXPECT_EQ(space.late_ranks(), (std::vector<int>{4, 6}));
}

TEST(exchange, a_fence_without_values_is_one_packet) {
    for (bool const forget : {false, true}) {
        auto const packets = release_packets({}, 2, forget);
        ASSERT_EQ(packets.size(), 1U);
        packet_reader packet(*packets[0]);
        EXPECT_EQ(packet.type<local::packet_type>(), local::packet_type::fence_done);
        EXPECT_EQ(packet.number<std::uint8_t>(), forget ? 1 : 0);
    }
}

TEST(exchange, a_large_node_gets_the_values_of_rank_0) {
    std::vector<local::entry> const all{{0, "a", "1"}, {7, "b", "2"}, {0, "c", "3"}};
    EXPECT_EQ(entries_of(release_packets(all, local::max_delivered_ranks, false)), all);
    EXPECT_EQ(entries_of(release_packets(all, local::max_delivered_ranks + 1, false)),
              (std::vector<local::entry>{all[0], all[2]}));
}

TEST(exchange, entering_twice_is_an_error) {
    exchange space(0, 2);
    EXPECT_TRUE(space.enter_fence(0).ok());
    EXPECT_FALSE(space.enter_fence(0).ok());
}

} // namespace
} // namespace diomp::run
