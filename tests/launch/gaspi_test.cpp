// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How ranks agree on addresses and ports for GPI-2, and what lies on a board.
#include "launch/gaspi/addresses.h"
#include "launch/gaspi/kv_area.h"
#include "launch/gaspi/ports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <netinet/in.h>
#include <set>
#include <sys/socket.h>

namespace diomp::launch::gaspi {
namespace {

constexpr std::uint32_t address(unsigned a, unsigned b, unsigned c, unsigned d) {
    return a << 24 | b << 16 | c << 8 | d;
}
constexpr std::uint32_t mask24 = 0xffffff00;
constexpr std::uint32_t mask16 = 0xffff0000;

TEST(addresses, ranks_of_one_host_use_loopback) {
    host_addresses const card{"a/boot/1", {{address(10, 0, 0, 1), mask24}}};
    EXPECT_THAT(choose_addresses({card, card}), testing::ElementsAre("127.0.0.1", "127.0.0.1"));
}

TEST(addresses, hosts_meet_in_a_network_of_the_first_one) {
    host_addresses const first{"a/boot/1",
                               {{address(172, 17, 0, 1), mask16}, {address(10, 0, 0, 1), mask24}}};
    host_addresses const second{
        "b/boot/1", {{address(192, 168, 5, 5), mask24}, {address(10, 0, 0, 2), mask24}}};
    // The first has no better reason than its own order.
    EXPECT_THAT(choose_addresses({first, second, first}),
                testing::ElementsAre("172.17.0.1", "10.0.0.2", "172.17.0.1"));
}

TEST(addresses, a_host_without_a_common_network_gives_its_first_address) {
    host_addresses const first{"a/boot/1", {{address(10, 0, 0, 1), mask24}}};
    host_addresses const far{"b/boot/1", {{address(10, 0, 7, 2), mask24}}};
    host_addresses const bare{"c/boot/1", {}};
    EXPECT_THAT(choose_addresses({first, far, bare}),
                testing::ElementsAre("10.0.0.1", "10.0.7.2", "127.0.0.1"));
}

TEST(addresses, a_card_is_read_as_it_was_written) {
    host_addresses const card{"a/boot/1", {{address(10, 0, 0, 1), mask24}, {1, 2}}};
    EXPECT_EQ(decode_addresses(encode_addresses(card)), card);
    EXPECT_EQ(decode_addresses(encode_addresses({"a", {}})), (host_addresses{"a", {}}));
}

TEST(ports, a_job_tries_the_same_bases_everywhere_and_another_job_begins_elsewhere) {
    auto const bases = candidate_bases("host-1-abc");
    EXPECT_EQ(bases, candidate_bases("host-1-abc"));
    EXPECT_EQ(std::set<int>(bases.begin(), bases.end()).size(), bases.size());
    EXPECT_NE(bases.front(), candidate_bases("host-2-abc").front());
    for (int const base : bases) {
        EXPECT_GE(base, 10240);
        EXPECT_LT(base + device_distance + max_ranks_per_host, 32768);
    }
}

TEST(ports, a_base_has_one_holder_per_rank) {
    for (int const base : candidate_bases("ports-test")) {
        unique_fd const first = reserve_base(base, 3);
        if (first.valid()) {
            EXPECT_FALSE(reserve_base(base, 3).valid());
            EXPECT_TRUE(reserve_base(base, 4).valid());
            return;
        }
    }
    GTEST_SKIP() << "all ports are in use";
}

TEST(ports, a_port_that_somebody_listens_at_is_not_free) {
    int const base = candidate_bases("listener-test").back();
    unique_fd const listener(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<std::uint16_t>(base + device_distance + 7));
    if (::bind(listener.get(), reinterpret_cast<const sockaddr *>(&at), sizeof(at)) != 0 ||
        ::listen(listener.get(), 1) != 0) {
        GTEST_SKIP() << "the port is in use";
    }
    EXPECT_FALSE(reserve_base(base, 7).valid());
}

TEST(board, values_are_found_until_there_is_no_room) {
    std::vector<std::byte> board(64);
    EXPECT_FALSE(find_value(board, "key"));
    EXPECT_TRUE(append_value(board, "key", "value"));
    EXPECT_TRUE(append_value(board, "ke", ""));
    EXPECT_EQ(find_value(board, "key"), "value");
    EXPECT_EQ(find_value(board, "ke"), "");
    EXPECT_FALSE(find_value(board, "k"));
    EXPECT_FALSE(append_value(board, "long", std::string(40, 'x')));
    EXPECT_EQ(find_value(board, "key"), "value");
}

TEST(board, a_damaged_length_reads_nothing_beyond_the_board) {
    std::vector<std::byte> board(32);
    ASSERT_TRUE(append_value(board, "key", "value"));
    std::uint32_t const wrong = 0xffffffff;
    std::memcpy(board.data(), &wrong, sizeof(wrong));
    std::memcpy(board.data() + sizeof(wrong), &wrong, sizeof(wrong));
    EXPECT_FALSE(find_value(board, "key"));
    EXPECT_FALSE(find_value({}, "key"));
}

} // namespace
} // namespace diomp::launch::gaspi
